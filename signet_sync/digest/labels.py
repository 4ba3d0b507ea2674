"""Names the sections of a report, in the languages that agents write: what is left, what waits, what says nothing."""

from __future__ import annotations

from functools import cache
from typing import Literal

from signet_sync.formats.lazy_pattern import late

Label = Literal["next", "blocker", "decision", "result", "aside", "empty"]

# One row a language. A name counts whole, without numbers, marks and emoji around it.
_NAMES: dict[Label, str] = {
    "next": (
        "next|next step|next steps|suggested next steps|possible next steps|recommended next steps|next actions"
        "|remaining|remaining work|remaining tasks|remaining steps|remaining items|still open|still to do|still missing"
        "|left to do|left|left over|what is left|what's left|what remains|what's next|what is next|not done|not yet done"
        "|not implemented|to do|todo|todos|to-do|open items|open points|open issues|open question|open questions"
        "|follow-up|follow-ups|follow up|followups|follow-up work|outstanding|outstanding items|deferred|pending"
        "|future work|action items"
        "|nächste schritte|nächster schritt|noch offen|offen|offene punkte|offene fragen|ausstehend|was noch fehlt"
        "|noch zu tun|es fehlt noch|verbleibend"
        "|prochaine étape|prochaines étapes|étapes suivantes|reste à faire|à faire|ce qu'il reste|ce qui reste|en suspens"
        "|questions ouvertes|points ouverts|non fait"
        "|próximo paso|próximos pasos|siguientes pasos|pendiente|pendientes|queda pendiente|falta por hacer|por hacer"
        "|preguntas abiertas|no hecho"
        "|próximo passo|próximos passos|o que falta|a fazer|pendente|pendências|em aberto"
        "|prossimi passi|da fare|resta da fare|in sospeso|domande aperte"
        "|残り|残作業|残っている作業|残タスク|次のステップ|次の作業|今後|未対応|未完了|やること|次にやること|未解決"
        "|下一步|后续|后续步骤|后续工作|待办|待办事项|未完成|剩余|剩余工作|还没做|未解决的问题|接下来"
        "|다음 단계|다음 작업|남은 작업|남은 일|할 일|미완료|미해결"
        "|следующие шаги|что дальше|осталось|осталось сделать|не сделано|открытые вопросы|дальше"
        "|sonraki adımlar|kalan işler|yapılacaklar|bước tiếp theo|còn lại"
    ),
    "blocker": (
        "blocked|blocked by|blocked on|blocker|blockers|open blockers|waiting for|waiting on"
        "|blockiert|blockiert durch|wartet auf|bloqué|bloqué par|blocages|bloqueado|bloqueado por|bloqueos|bloqueios"
        "|bloccato|bloccato da|ブロック|ブロック中|ブロッカー|阻塞|卡住|차단|막힘|заблокировано|ждёт|блокеры|engellendi"
    ),
    "decision": (
        "decision|decisions|key decisions|decisions made|decided|agreed|entscheidung|entscheidungen|entschieden"
        "|beschlossen|décision|décisions|decisión|decisiones|decisão|decisões|decisione|decisioni|決定|決定事項|决定"
        "|결정|решения|решено|kararlar"
    ),
    "result": (
        "solution|the solution|fix|the fix|outcome|result|results|what i did|what changed|what i changed|changes"
        "|changes made|implemented|done|answer|short answer|tl;dr|recommendation|conclusion|root cause and fix"
        "|lösung|ergebnis|geändert|änderungen|umgesetzt|fazit|antwort|solution apportée|résultat|modifications|fait"
        "|réponse|solución|resultado|cambios|hecho|respuesta|solução|mudanças|feito|soluzione|risultato|modifiche|fatto"
        "|結果|対応内容|変更|変更点|実装内容|結論|解决方案|结果|修改|更改|结论|已完成|결과|변경 사항|완료|결론"
        "|решение|результат|изменения|сделано|итог|вывод|çözüm|sonuç|kết quả"
    ),
    "aside": (
        "problem|the problem|bug|the bug|issue|the issue|cause|root cause|the cause|context|background|before|example"
        "|why|why it happened|verification|verified|test|tests|testing|test results|validation|note|notes|reason"
        "|how it works|usage|caveat|caveats|files|files changed|files modified|modified files|changed files|how to test"
        "|ursache|hintergrund|vorher|beispiel|überprüfung|hinweis|dateien|geänderte dateien|cause racine|contexte|avant"
        "|exemple|vérification|vérifications|remarque|fichiers|fichiers modifiés|causa|contexto|ejemplo|verificación"
        "|nota|archivos|exemplo|verificação|arquivos|contesto|esempio|verifica|file|原因|背景|例|検証|テスト|注意|ファイル"
        "|问题|示例|验证|测试|注意事项|文件|원인|배경|예시|검증|테스트|참고|причина|контекст|пример|проверка|тесты|файлы"
    ),
    "empty": (
        "summary|final summary|overview|status|details|implementation summary|summary of changes|executive summary"
        "|key points|key changes|analysis|findings|plan|report|zusammenfassung|überblick|stand|résumé|bilan|synthèse"
        "|resumen|resumo|riepilogo|概要|まとめ|总结|摘要|概述|요약|итоги|резюме|özet|tóm tắt"
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
