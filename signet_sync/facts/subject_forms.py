"""Lists the forms in which statements give a subject a value, choose something, or retire it."""

from __future__ import annotations

import re

from signet_sync.formats.lazy_pattern import late

_NUMBER = (
    r"[-~≈]?[$€£]?\d+(?:[.,:_/×x-]\d+)*"
    r"(?:\s?(?:%|°|(?!(?:not|and|or|for|in|on|at|per|to|of|with|by|as|when|um|pro|und|por|на)\b)[^\W\d_]{1,14}))?"
)
_WORD = (
    r"on|off|true|false|enabled|disabled|required|optional|mandatory|forbidden|allowed|an|aus|aktiviert|deaktiviert|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|none|unlimited"
)
_BOUND = r"(?:(?P<bound>at most|at least|no more than|no less than|max(?:imum)?|min(?:imum)?|up to|below|under|above|over)\s+)?"
_VALUE = rf"{_BOUND}(?P<v>{_NUMBER}|(?:{_WORD})\b|(?-i:[A-Z][\w.+#-]*|[a-z]+[\w-]*\d[\w.-]*)(?=\W*$))"
_STEPS = r"set|changed|switched|converted|raised|lowered|increased|decreased|reduced|bumped|cut|limited|capped|pinned|upgraded|downgraded|moved|migrated"
_LEAD = (
    r"(?:(?:ok(?:ay)?|yes|so|and|then|also|actually|please|decided|decision|agreed|now|from now on|henceforth),?\s+)*"
    r"(?:to\s+)?(?:(?:we|i|let's|lets|let us|you)(?:'ll|'ve|'re)?\s+)?(?:(?:have|has|had|will|should|must|are|were|can|do|"
    r"did|just|now|always|only|agreed|decided|chose|want|going|need)\s+(?:to\s+)?)*"
)
_USE = (
    r"use|using|used|adopt|adopted|choose|chose|pick|picked|go with|went with|going with|stay with|stick with|take|took"
)
_DONE = r"(?:[^\W\d_]{2,16}ed|kept|held|built|made|written|read|run|sent|known|chosen|found|drawn|taken)"
_BY = r"by|in|with|on|from|via|through|as"
_DURCH = r"durch|in|mit|auf|anhand von|über|als"
_SPANISH_USE = r"usar|usamos|usaremos|utilizamos|utilizar"

# Groups: `s` has the value `v`; `a` is retired, by a `rule` if it is none that was chosen before; `b` is chosen, for `s`
# if there is one; `n`: only if `b` is a number. `s` goes by `u`, or by `now` in place of what `was`.
# Each form is tried only on a clause with one of its words.
FORMS: tuple[tuple[frozenset[str], re.Pattern[str]], ...] = tuple(
    (frozenset(words.split()), late(form, re.IGNORECASE))
    for words, form in (
        # the subject is raised from 5 to 7; is (now) 5
        (
            _STEPS.replace("|", " "),
            rf"^(?P<s>[^,:]{{2,70}}?)\s+(?:is|are|was|were|has been|have been|gets?|got|must be|should be|will be)\s+"
            rf"(?:now\s+)?(?:{_STEPS})\s+(?:from\s+(?P<a>[^,]{{1,40}}?)\s+)?(?:down |up |back |over )?(?:to|at)\s+(?P<b>.+)$",
        ),
        (
            "is are stay stays remain remains become becomes equals be",
            rf"^(?P<s>[^,:]{{2,70}}?)\s+(?:is|are|stays?|remains?|becomes?|equals|must be|should be|has to be|will be)\s+"
            rf"(?:now |currently |still |only |exactly |always |at |back to |limited to )*{_VALUE}(?P<rest>.*)$",
        ),
        (
            "is are",
            r"^(?P<s>[^,:]{2,70}?)\s+(?:is|are)\s+(?:now\s+)?(?P<v>(?P<w>[^\W\d_]{2,20}))(?P<rest>)$",
        ),
        (
            "set change changed switch switched convert converted migrate migrated upgrade upgraded",
            rf"^{_LEAD}(?:set|change|changed|switch|switched|convert|converted|upgrade|upgraded|migrate|migrated)\s+"
            r"(?!from\s|to\s|over\s)(?P<s>[^,:]{2,60}?)\s+(?:from\s+(?P<a>[^,]{1,40}?)\s+)?(?:back |over )?to\s+(?P<b>.+)$",
        ),
        (
            "raise raised lower lowered increase increased decrease decreased reduce reduced bump bumped cut cap capped"
            " limit limited pin pinned keep set",
            rf"^{_LEAD}(?P<n>raise|raised|lower|lowered|increase|increased|decrease|decreased|reduce|reduced|bump|bumped|cut|"
            r"cap|capped|limit|limited|pin|pinned|keep|set)\s+(?!from\s|to\s|over\s)(?P<s>[^,:]{2,60}?)\s+"
            r"(?:from\s+(?P<a>[^,]{1,40}?)\s+)?(?:down |up |back )?(?:to|at)\s+(?P<b>.+)$",
        ),
        (
            "from",
            r"^(?P<s>[^,:]{2,60}?)\s+(?:(?:is|are|was|were|have|has)\s+)?(?:goes|went|go|moves?|moved|switch(?:es|ed)?|migrated|changed?)\s+from\s+(?P<a>[^,]{1,40}?)\s+to\s+(?P<b>.+)$",
        ),
        # from A to B; A by B
        (
            "from",
            rf"^{_LEAD}(?:switch|switched|switching|move|moved|moving|migrate|migrated|migrating|change|changed|go|went)\s+"
            r"(?:over\s+)?from\s+(?P<a>[^,]{1,60}?)\s+to\s+(?P<b>.+)$",
        ),
        (
            "replace replaced replacing swap swapped",
            rf"^{_LEAD}(?:replace|replaced|replacing|swap|swapped)\s+(?P<a>[^,]{{1,60}}?)\s+(?:with|by|for)\s+(?P<b>.+)$",
        ),
        (
            "replaced superseded",
            r"^(?P<a>[^,:]{1,60}?)\s+(?:is|are|was|were|has been|have been|gets?|got)\s+(?:now\s+)?(?:replaced|superseded)\s+"
            r"(?:with|by)\s+(?P<b>.+)$",
        ),
        # a project replaces A with B
        (
            "replaces replaced swaps",
            r"^[^,:]{1,40}?\s+(?:now\s+)?(?:replaces|replaced|swaps)\s+(?P<a>[^,]{1,60}?)\s+(?:with|by)\s+(?P<b>.+)$",
        ),
        (
            "replaces replaced supersedes",
            r"^(?P<b>[^,:]{1,60}?)\s+(?:now\s+)?(?:replaces|replaced|supersedes)\s+(?P<a>.+)$",
        ),
        # the subject is stored in, or decided by, B instead of A
        (
            "instead place rather",
            rf"^(?P<s>[^,:]{{2,60}}?)\s+(?:is|are)\s+(?:now\s+)?{_DONE}\s+(?:{_BY})\s+(?P<now>.{{1,80}}?),?\s+"
            rf"(?:instead of|in place of|rather than)\s+(?:(?:{_BY})\s+)?(?P<was>[^,]{{1,60}})(?:,.*)?$",
        ),
        (
            "statt anstelle",
            rf"^(?P<s>[^,:]{{2,60}}?)\s+(?:wird|werden|ist|sind)\s+(?:jetzt\s+|nun\s+)?(?:{_DURCH})\s+(?P<now>.{{1,80}}?)\s+"
            rf"(?:statt|anstelle von)\s+(?:(?:{_DURCH})\s+)?(?P<was>[^,]{{1,60}}?)\s+\w+(?:t|en)$",
        ),
        (
            "lugar vez",
            r"^(?P<s>[^,:]{2,60}?)\s+(?:ahora\s+)?se\s+\w+\s+(?:en|por|con)\s+(?P<now>.{1,80}?)\s+en\s+(?:lugar|vez)\s+de\s+"
            r"(?:en\s+|por\s+|con\s+)?(?P<was>[^,]{1,60})$",
        ),
        # instead of A, B; B instead of A
        (
            "instead place rather",
            rf"^(?:now\s+)?(?:instead of|in place of|rather than)\s+(?:using\s+)?(?P<a>[^,]{{1,60}}?)"
            rf"(?:,\s+(?:now\s+)?(?:{_LEAD}(?:{_USE})\s+)?|\s+(?:now|{_LEAD}(?:{_USE}))\s+(?:(?:{_USE})\s+)?)(?P<b>.+)$",
        ),
        (
            "instead place rather not",
            rf"^{_LEAD}(?:now\s+)?(?:(?:{_USE}|switch to|switched to|move to|moved to)\s+)(?P<b>[^,]{{1,60}}?),?\s+"
            r"(?:instead of|in place of|rather than|(?P<rule>not))\s+(?P<a>.+)$",
        ),
        # no longer A; A is dropped
        (
            "longer don't not stop stopped never",
            rf"^{_LEAD}(?:no longer|(?P<rule>don't|do not|never)|stop|stopped)\s+(?:{_USE}|rely on|relying on|want|need|support)\s+"
            r"(?P<a>[^,]{1,60}?)(?:\s+(?:anymore|any more))?(?:,\s*(?:but|rather|we (?:now )?use|use)?\s*(?P<b>[^,]+?)"
            r"(?:\s+(?:instead|now))?)?$",
        ),
        ("no", r"^no (?:longer|more)\s+(?P<a>[^,]{1,60})$"),
        ("longer", rf"^{_LEAD}no longer\s+(?P<do>[^\W\d_]{{3,20}})(?:\s+(?P<tail>.+))?$"),
        (
            "dropped retired abandoned scrapped deprecated discontinued obsolete longer",
            r"^(?P<a>[^,:]{1,60}?)\s+(?:is|are|was|were|has been|have been)\s+(?:now\s+)?(?:dropped|retired|abandoned|scrapped|"
            r"deprecated|discontinued|obsolete|no longer (?:used|needed|supported|wanted|required|in use))\b(?P<tail>.*)$",
        ),
        (
            "drop dropped dropping retire retired abandon abandoned ditch ditched scrap scrapped rid away",
            rf"^{_LEAD}(?:drop|dropped|dropping|retire|retired|abandon|abandoned|ditch|ditched|scrap|scrapped|get rid of|got rid of|"
            r"move away from|moved away from)\s+(?P<a>[^,]{1,60}?)(?:,?\s+(?:and|in favou?r of|for)\s+(?:then\s+)?"
            rf"(?:(?:{_USE}|go to|switch to|move to)\s+)?(?P<b>.+))?$",
        ),
        ("instead", r"^(?P<b>[^,:]{1,40}?)\s+instead$"),
        # use B (for C)
        (
            "switch switched move moved migrate migrated",
            rf"^{_LEAD}(?:switch|switched|move|moved|migrate|migrated)\s+(?:over\s+)?to\s+(?P<b>.+)$",
        ),
        (
            "use using used adopt adopted choose chose pick picked go went going stay stick take took",
            rf"^{_LEAD}(?:{_USE})\s+(?P<b>.+)$",
        ),
        # A for C; B instead of A
        ("for", r"^(?P<b>[^\W\d_][\w.+#-]{1,30}\s+for\s+[^,:]{2,60})$"),
        ("instead rather", r"^(?P<b>[^,:]{1,40}?)\s+(?:instead of|rather than)\s+(?P<a>[^,]{1,60})$"),
        ("statt", r"^(?P<b>[^,:]{1,40}?)\s+statt\s+(?P<a>[^,]{1,60})$"),
        # German
        (
            "ist sind beträgt bleibt bleiben liegt wird muss",
            rf"^(?P<s>[^,:]{{2,60}}?)\s+(?:ist|sind|beträgt|bleibt|bleiben|liegt bei|wird|muss)\s+(?:jetzt |nun |ab sofort |auf )*{_VALUE}"
            r"(?P<rest>.*)$",
        ),
        (
            "von",
            r"^(?P<s>[^,:]{2,60}?)\s+(?:wurde|wurden|wird|ist|sind)?\s*(?:jetzt )?von\s+(?P<a>[^,]{1,40}?)\s+auf\s+(?P<b>[^,]+?)\s+"
            r"(?:erhöht|gesenkt|geändert|gesetzt|umgestellt|angehoben|reduziert|verkürzt|verlängert)\b",
        ),
        (
            "von",
            r"^(?:wir\s+)?(?:sind\s+|haben\s+|wechseln\s+|stellen\s+)?von\s+(?P<a>[^,]{1,40}?)\s+(?:auf|zu)\s+(?P<b>[^,]+?)"
            r"(?:\s+(?:um|umgestellt|gewechselt|umgestiegen|migriert))?$",
        ),
        (
            "statt anstelle anstatt",
            r"^(?:jetzt\s+)?(?:statt|anstelle von|anstatt)\s+(?P<a>[^,]{1,40}?)(?:,|\s+(?:jetzt|nun|nehmen wir|verwenden wir|nutzen wir))\s*"
            r"(?:(?:jetzt|nun|nehmen wir|verwenden wir|nutzen wir)\s+)*(?P<b>.+)$",
        ),
        (
            "ersetzt",
            r"^(?P<a>[^,:]{1,40}?)\s+(?:wird|wurde|ist|werden|wurden)\s+durch\s+(?P<b>[^,]+?)\s+ersetzt\b",
        ),
        (
            "mehr",
            r"^(?:wir\s+)?(?:verwenden|nutzen|nehmen|benutzen)\s+(?P<a>[^,]{1,40}?)\s+nicht mehr(?:,\s*(?:sondern|stattdessen)?\s*(?P<b>.+))?$",
        ),
        (
            "mehr kein keine keinen",
            r"^(?:nicht mehr|kein(?:e|en)?)\s+(?P<a>[^,]{1,40}?)(?:\s+mehr)?,\s*(?:sondern|stattdessen|jetzt)\s+(?P<b>.+)$",
        ),
        (
            "entfällt entfallen abgeschafft gestrichen eingestellt",
            r"^(?P<a>[^,:]{1,40}?)\s+(?:entfällt|entfallen|(?:ist|wird|wurde|sind) (?:abgeschafft|gestrichen|eingestellt))\b",
        ),
        (
            "verwenden nutzen nehmen benutzen verwende nutze nimm",
            r"^(?:wir\s+)?(?:jetzt\s+)?(?:verwenden|nutzen|nehmen|benutzen|verwende|nutze|nimm)\s+(?:jetzt\s+|nun\s+)?(?P<b>(?:(?!nicht mehr)[^,])+)$",
        ),
        # Spanish
        (
            "es son queda pasa",
            rf"^(?P<s>[^,:]{{2,60}}?)\s+(?:es|son|queda en|pasa a ser)\s+(?:ahora (?:de )?|de )*{_VALUE}(?P<rest>.*)$",
        ),
        (
            "ya",
            rf"^ya no (?:{_SPANISH_USE}|queremos)\s+(?P<a>[^,]{{1,40}})(?:,\s*(?:sino|ahora)?\s*(?P<b>.+))?$",
        ),
        (
            "lugar vez",
            rf"^(?:en lugar de|en vez de)\s+(?P<a>[^,]{{1,40}}?)(?:,|\s+ahora|\s+(?:{_SPANISH_USE}))\s*(?:ahora\s+)?(?:(?:{_SPANISH_USE})\s+)?(?P<b>.+)$",
        ),
        (
            "de",
            r"^(?:cambi\w+|pas\w+|migr\w+)\s+de\s+(?P<a>[^,]{1,40}?)\s+a\s+(?P<b>.+)$",
        ),
        (
            "por con",
            r"^(?:reemplaz\w+|sustitu\w+)\s+(?:a\s+)?(?P<a>[^,]{1,40}?)\s+(?:por|con)\s+(?P<b>.+)$",
        ),
        (
            "de",
            r"^(?:sub\w+|baj\w+|cambi\w+)\s+(?P<s>[^,:]{2,50}?)\s+de\s+(?P<a>\d[^,]{0,20}?)\s+a\s+(?P<b>\d.*)$",
        ),
        (
            "usar usamos usaremos utilizamos utilizar",
            rf"^(?:ahora\s+)?(?:{_SPANISH_USE})\s+(?:ahora\s+)?(?P<b>[^,]+)$",
        ),
        # Russian
        (
            "больше",
            r"^(?:мы\s+)?больше не (?:используем|нужен|нужна|нужно)\s+(?P<a>[^,]{1,40})(?:,\s*(?:теперь|а)?\s*(?P<b>.+))?$",
        ),
        (
            "вместо",
            r"^вместо\s+(?P<a>[^,]{1,40}?)(?:,|\s+теперь|\s+используем|\s+берём)\s*(?:теперь\s+|используем\s+)*(?P<b>.+)$",
        ),
        (
            "перешли переходим перейти",
            r"^(?:мы\s+)?(?:перешли|переходим|перейти)\s+с\s+(?P<a>[^,]{1,40}?)\s+на\s+(?P<b>.+)$",
        ),
        (
            "заменили заменить меняем",
            r"^(?:мы\s+)?(?:заменили|заменить|меняем)\s+(?P<a>[^,]{1,40}?)\s+на\s+(?P<b>.+)$",
        ),
        (
            "теперь сейчас — равен равна равно составляет",
            r"^(?P<s>[^,:]{2,50}?)\s+(?:теперь|сейчас|—|равен|равна|равно|составляет)\s+(?P<v>\d\S*(?:\s\S{1,12})?)(?P<rest>.*)$",
        ),
        ("используем используется берём", r"^(?:мы\s+)?(?:теперь\s+)?(?:используем|берём)\s+(?P<b>[^,]+)$"),
        # Chinese and Japanese
        (
            "",
            r"^(?:我们)?(?:不再|不)(?:使?用|采用)\s*(?P<a>[^,，、]{1,20}?)(?:了)?(?:[,，、]\s*(?:改为|改)?(?:使?用|采用)?\s*(?P<b>[^,，]{1,20}))?$",
        ),
        (
            "",
            r"^(?:用|改用)\s*(?P<b>[^,，、]{1,20}?)\s*(?:代替|取代|替换|而不是)\s*(?P<a>[^,，]{1,20})$",
        ),
        (
            "",
            r"^(?:从|由)\s*(?P<a>[^,，、]{1,20}?)\s*(?:切换到|切换为|改为|改成|迁移到|换成)\s*(?P<b>[^,，]{1,20})$",
        ),
        (
            "",
            r"^(?P<s>[^,，:：]{2,20}?)\s*(?:从|由)\s*(?P<a>\d[^,，]{0,8}?)\s*(?:改为|改成|提高到|降到|调到)\s*(?P<b>\d[^,，]{0,8})$",
        ),
        (
            "",
            r"^(?P<s>[^,，:：0-9]{2,20}?)\s*(?:现在)?(?:改为|改成|设为|是|为)\s*(?P<v>\d[\d.%A-Za-z]*)(?P<rest>.{0,6})$",
        ),
        (
            "",
            r"^(?P<a>[^,、:]{1,20}?)\s*の(?:代わり|かわり)に\s*(?P<b>[^,、]{1,20}?)\s*(?:を使.*)?$",
        ),
        (
            "",
            r"^(?P<a>[^,、:]{1,20}?)\s*(?:をやめて|は(?:もう)?使わず)[、,]?\s*(?P<b>[^,、]{1,20}?)\s*(?:を使.*|にする|にします|に(?:変更|切り替え).*)?$",
        ),
        (
            "",
            r"^(?P<a>[^,、:]{1,20}?)\s*から\s*(?P<b>[^,、]{1,20}?)\s*(?:に|へ)(?:変更|切り替え|移行|置き換え).*$",
        ),
        ("", r"^(?:我们)?(?:改用|使用|采用|用)\s*(?P<b>[A-Za-z][\w.+-]{1,20})$"),
        ("", r"^(?P<b>[A-Za-z][\w.+-]{1,20})\s*を(?:使う|使います|使用|採用).*$"),
        (
            "",
            r"^(?P<s>[^,、:0-9]{2,20}?)\s*(?:は|を)\s*(?P<v>\d[\d.%A-Za-z]*)(?:に変更|にする|にします|です|になり)?(?P<rest>.{0,6})$",
        ),
        # the subject goes by U, or is stored in it: the last forms, since they say least
        (
            "compare compares rely relies goes go based uses trust trusts",
            r"^(?P<s>[^,:]{2,60}?)\s+(?:compares?|rel(?:y|ies) on|go(?:es)? by|(?:is|are) based on|uses|trusts?)\s+(?P<u>.+)$",
        ),
        ("is are", rf"^(?P<s>[^,:]{{2,60}}?)\s+(?:is|are)\s+(?:now\s+)?{_DONE}\s+(?:{_BY})\s+(?P<u>.+)$"),
        (
            "wird werden ist sind",
            rf"^(?P<s>[^,:]{{2,60}}?)\s+(?:wird|werden|ist|sind)\s+(?:jetzt\s+|nun\s+)?(?:{_DURCH})\s+(?P<u>[^,]{{1,60}}?)\s+\w+(?:t|en)$",
        ),
        ("se", r"^(?P<s>[^,:]{2,60}?)\s+(?:ahora\s+)?se\s+\w+\s+(?:en|por|con)\s+(?P<u>[^,]{1,60})$"),
    )
)
