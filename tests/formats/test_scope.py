"""Session keys and kinds of places: what names a place that others read is never taken for a private one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_sync.formats.ids import is_shared, place_of

chats = st.booleans()


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ("agent:main:main", "direct"),
        ("main", "direct"),
        ("Agent:Group:MAIN", "direct"),  # an agent of that name
        ("agent:main:main:thread:42", "direct"), ("agent:main:direct:mira", "direct"),
        ("agent:main:telegram:dm:4711", "direct"), ("agent:main:telegram:work:direct:4711:thread:9", "direct"),
        ("telegram:dm:4711", "direct"), ("agent:main:whatsapp:group:123@g.us", "group"),
        ("agent:main:whatsapp:direct:123@g.us", "group"), ("agent:main:whatsapp:123-456@G.US", "group"),
        ("agent:main:whatsapp:status@broadcast", "group"), ("agent:main:discord:channel:99:thread:5", "group"),
        ("agent:main:discord:guild-7:direct:5", "group"), ("agent:main:telegram:group:-100:topic:3", "group"),
        ("agent:main:telegram:direct:1:group:2", "group"), ("agent:main:global", "group"),
        ("agent:main:main:group:1", "group"), ("group:123", "group"), ("discord-guild-7", "group"),
        ("thread-7", "group"), ("agent:main", "unknown"), ("agent::main", "unknown"), ("agent:main:", "unknown"),
        ("agent:main:main:", "unknown"), ("agent:main:telegram:direct:", "unknown"), ("agent:main:direct", "unknown"),
        ("agent:main:slack:C024BE91L", "unknown"), ("agent:main:subagent:7f", "unknown"), ("cron:nightly", "unknown"),
        ("#general", "unknown"), ("ｇｒｏｕｐ", "unknown"), ("telegram 4711", "unknown"), (17, "unknown"),
        (["agent"], "unknown"), ("0a4ef7d2-1de1-4b2c-9d0e-0b3b6c1f6a11", ""), ("ses_01", ""), ("  ", ""), (None, ""),
    ],
)  # fmt: skip
def test_what_a_key_names(key, place):
    assert place_of(key) == place
    assert is_shared({"sessionKey": key}, carries_chats=False) == (place in ("group", "unknown"))
    assert is_shared({"session_key": key}, carries_chats=True) == (place != "direct")


@given(chats=chats, kind=st.text(min_size=1).filter(str.strip), key=st.sampled_from([None, "agent:main:main"]))
def test_a_kind_that_is_not_direct_is_shared_whatever_the_key_says(chats, kind, key):
    direct = kind.strip().lower() in ("direct", "dm", "dms", "im", "private")
    assert is_shared({"chatType": kind, "sessionKey": key}, carries_chats=chats) == (not direct)
    assert is_shared({"chat_type": kind, "session_key": "agent:main:slack:channel:1"}, carries_chats=chats)
    assert is_shared({"chatType": "direct", "group_id": "1", "session_key": "agent:main:main"}, carries_chats=chats)


@pytest.mark.parametrize("chats", [True, False])
def test_where_nothing_is_said_the_harness_decides(chats):
    assert is_shared({"session_id": "s", "cwd": "/home/u/group"}, carries_chats=chats) == chats
    assert not is_shared({"chatType": "direct", "sessionKey": "agent:main:hook:7"}, carries_chats=chats)
