"""Names the sections of a report, in the languages that agents write: what waits, what came out, what is aside, what says nothing."""

from __future__ import annotations

from functools import cache
from typing import Literal

from signet_sync.formats.lazy_pattern import late

Label = Literal["blocker", "result", "aside", "empty"]

# One row a language. A name counts whole, without numbers, marks and emoji around it.
_NAMES: dict[Label, str] = {
    "blocker": (
        "blocked|blocked by|blocked on|blocker|blockers|open blockers|waiting for|waiting on"
        "|blockiert|blockiert durch|wartet auf|bloqué|bloqué par|blocages|bloqueado|bloqueado por|bloqueos|bloqueios"
        "|bloccato|bloccato da|ブロック|ブロック中|ブロッカー|阻塞|卡住|차단|막힘|заблокировано|ждёт|блокеры|engellendi"
    ),
    "result": (
        "solution|the solution|fix|the fix|outcome|result|results|what i did|what changed|what i changed|changes"
        "|changes made|implemented|done|answer|short answer|tl;dr|recommendation|conclusion|root cause and fix"
        "|lösung|ergebnis|geändert|änderungen|umgesetzt|fazit|antwort|solution apportée|résultat|modifications|fait"
        "|réponse|solución|resultado|cambios|hecho|respuesta|solução|mudanças|feito|soluzione|risultato|modifiche|fatto"
        "|結果|対応内容|変更|変更点|実装内容|結論|解决方案|结果|修改|更改|结论|已完成|결과|변경 사항|완료|결론"
        "|решение|результат|изменения|сделано|итог|вывод|çözüm|sonuç|kết quả"
    ),
    # What is left, and what is said about the work.
    "aside": (
        "next|next step|next steps|suggested next steps|remaining|remaining work|what's left|what's next|not done|to do"
        "|todo|open items|open questions|follow-up|follow-ups|outstanding|deferred|pending|future work|action items"
        "|nächste schritte|offen|offene punkte|offene fragen|noch zu tun|prochaines étapes|reste à faire|à faire"
        "|questions ouvertes|próximos pasos|pendiente|pendientes|próximos passos|pendências|prossimi passi|da fare"
        "|残り|残作業|次のステップ|今後|未対応|やること|下一步|后续|待办|未完成|다음 단계|남은 작업|할 일"
        "|следующие шаги|осталось|sonraki adımlar|kalan işler|bước tiếp theo"
        "|problem|the problem|bug|the bug|issue|the issue|cause|root cause|the cause|context|background|before|example"
        "|why|why it happened|verification|verified|test|tests|testing|test results|validation|note|notes|reason"
        "|how it works|usage|caveat|caveats|files|files changed|files modified|modified files|changed files|how to test"
        "|ursache|hintergrund|vorher|beispiel|überprüfung|hinweis|dateien|geänderte dateien|cause racine|contexte|avant"
        "|exemple|vérification|vérifications|remarque|fichiers|fichiers modifiés|causa|contexto|ejemplo|verificación"
        "|nota|archivos|exemplo|verificação|arquivos|contesto|esempio|verifica|file|原因|背景|例|検証|テスト|注意|ファイル"
        "|问题|示例|验证|测试|注意事项|文件|원인|배경|예시|검증|테스트|참고|причина|контекст|пример|проверка|тесты|файлы"
    ),
    "empty": (
        "summary|final summary|overview|status|details|key points|key changes|analysis|findings|plan|report"
        "|zusammenfassung|überblick|stand|résumé|bilan|resumen|resumo|riepilogo|概要|まとめ|总结|摘要|요약|итоги|özet"
    ),
}  # fmt: skip
_OF: dict[str, Label] = {name: label for label, names in _NAMES.items() for name in names.split("|")}
_EDGE = late(r"^[^\w]*(?:\d{1,2}[.)]\s*)?[^\w]*|[^\w]+$")
_BEHIND = late(r"\s*[(（:：].*$|\s+(?:for|in|of|to|für|pour|para)\b.*$")
_LONGEST = 60


@cache
def label_of(title: str) -> Label | None:
    """Returns what the name of a section says; None for any other words."""
    if len(title) > _LONGEST:
        return None
    bare = " ".join(_EDGE.sub("", title).replace("’", "'").casefold().split())
    return _OF.get(bare) or _OF.get(_BEHIND.sub("", bare).strip())


def names_label(text: str, label: Label) -> bool:
    """Returns whether a text has a name of sections that say this, wherever it stands."""
    said = text.casefold()
    return any(name in said for name in _NAMES[label].split("|"))
