"""Lists vendors whose name before `key`, `token` or `=` marks a secret of their service."""

from __future__ import annotations

_NAMES = """
ably abuseipdb adafruit adobe airbrake airship airtable alchemy algolia alibaba aliyun amplitude anthropic apify
apollo appcues artifactory asana atlassian auth0 aws axonaut azure bamboo beamer bitbucket bitfinex bitly
bitrise bittrex blynk braintree branch brevo browserstack bugsnag buildkite cal calendly chargebee circle
circleci clarifai clearbit clickup clojars cloudflare cloudinary codacy codecov cohere coinbase confluent
contentful convertkit coveralls crowdin customerio databricks datadog datagov dd deepgram deepl deepseek
delighted deputy detectify devcycle digitalocean discord docker doppler drone dropbox duffel dynatrace easypost
elastic elevenlabs etherscan etsy eventbrite exchangerate facebook fastly figma finicity finnhub firebase
fireworks flickr flutterwave fly freshbooks freshdesk frontapp fullstory gcp geckoboard gemini genius ghost
gitea github gitlab gitter gocardless google grafana groq harness helpscout heroku hotjar hubspot huggingface
ibm ibmcloud infracost infura instagram intercom ipinfo ipstack jenkins jfrog jira jotform jumpcloud keen kite
klaviyo kraken kucoin langchain langfuse langsmith lastfm launchdarkly lemlist line linear linkedin lob logdna
loggly looker mailchimp mailgun mailjet mandrill mapbox mattermost messagebird mistral mixpanel monday moralis
netlify newrelic ngrok noticeable notion npm nuget nvidia nytimes okta omnisend onesignal openai opencage
openrouter openweather opsgenie optimizely packagecloud paddle pagerduty parse paypal paystack perplexity pinata
pinecone pipedrive pivotal plaid planetscale plivo polygon postbacks posthog postman postmark prefect pulumi
pusher pypi quay quicknode rapidapi readme recaptcha replicate rollbar rubygems sauce scaleway scrapingbee
segment sendbird sendgrid sendinblue sentry serpapi shippo shodan shopify shortcut sidekiq slack snyk sonar
sonarcloud sonarqube sourcegraph splunk spotify square stability strava stripe stytch sumologic supabase
surveymonkey tableau tailscale tavily telegram terraform thousandeyes tiingo todoist together toggl travis
trello tumblr twilio twitch twitter typeform unsplash uploadcare uptimerobot vault vercel virustotal voyage
vultr wakatime weaviate webflow wistia wordpress workos xai yandex yelp youtube zapier zendesk zeplin zoho zoom
"""
VENDORS = frozenset(_NAMES.split())
