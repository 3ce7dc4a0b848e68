"""The words around the numbers of a refusal: what a number of tokens means, and what a wait is.

For `agent.providers.refusal_numbers` and `agent.providers.errors`; matched as in
`agent.providers.vocabulary`.
"""

from __future__ import annotations

import re

from agent.providers.languages import MORE
from agent.providers.patterns import any_of, either

MINUTE_LIMIT = any_of(r"""
    limit(?: is|:| of)? ?(?P<number>\d{2,9})(?= ?(?:tokens|tpm|,|\.|;|\)|/| per| exceeded|$))
""")
REQUESTED = re.compile(
    r"request(?:ed|s|ing)?(?: is|:| of| for| has| contains|(?: alone)? needs)? ?(?:about )?"
    r"(?P<number>\d{2,9})\b"
)
# One request, as what the number directly after it is about: in the singular, and not what was used.
ONE_REQUEST = re.compile(
    r"(?:\brequest(?!s)|\bprompt\b|\brequete(?!s)|\bsolicitud(?!es)|\bpeticion(?!es)|\bsolicitacao"
    r"|\brequisicao|\brichiesta|\banfrage(?!n)|запрос(?!ов|ы|ам|ах)|请求|請求|リクエスト|요청|\baanvraag"
    r"|\bzapytani[ea]\b|\bistek\b|\byeu cau)[^\d,;]{0,32}$"
)
USED_UP = re.compile(
    r"\bused\b|so far|verbraucht|utilise|utilizad|consum|использ|израсход|已用|已使用|使用済|사용"
)
# Of one request, with signs.
OVER_MINUTE = re.compile(
    r"(?:single|one) request .{0,60}?(?P<asked>\d{2,9}) ?> ?(?P<limit>\d{2,9})"
)

# Of a wait: numbers with their units, after words for later or before them.
WAIT_UNITS = (
    (r"days?|天|日|день|дня|дней|d", 86_400.0),
    (
        either(
            r"hours?|hrs?|小时|小時|時間|час(?:а|ов)?|horas?|heures?|stunden?|시간|h", MORE.hours
        ),
        3_600.0,
    ),
    (either(r"min(?:ute)?[sn]?|分钟|分鐘|分|минут[аыу]?|minutos?|분|m", MORE.minutes), 60.0),
    (r"ms|milliseconds?|毫秒|ミリ秒", 0.001),
    (
        either(
            r"sec(?:ond)?s?|秒钟|秒鐘|秒|секунд[аыу]?|сек|с|segundos?|secondes?|sekunden?|초|s",
            MORE.seconds,
        ),
        1.0,
    ),
)
_UNIT = "|".join(pattern for pattern, _ in WAIT_UNITS)
_FIGURE = r"\d{1,9}(?:\.\d{1,9})?"
_AMOUNT = rf"{_FIGURE} ?(?:{_UNIT})(?![a-zа-я])"
_AND = r",? ?(?:and )?"
WAIT_PART = any_of(rf"(?P<number>{_FIGURE}) ?(?P<unit>{_UNIT})(?![a-zа-я])")
_LATER = either(
    r"again|try in|retry\w*|wait\w*|available|resets?|重试|等待|再试|повтор\w*|подожд\w*|через|nuevo|"
    r"novamente|intent\w*|tent\w+ em|nouveau|reessay\w*|patient\w*|warten",
    MORE.later,
)
_BEHIND_WAIT = either(
    r"后|後|之后|以后|あと|待って|후|뒤|erneut|noch einmal|de nuevo|novamente", MORE.later
)
WAIT = any_of(rf"""
    (?:{_LATER})[^\d]{{0,24}}{_AMOUNT}(?:{_AND}{_AMOUNT})*
    {_AMOUNT}(?:{_AND}{_AMOUNT})* ?(?:{_BEHIND_WAIT})
""")
WAIT_PLAIN = re.compile(
    r"(?:retry[_-]?after|resets?_in)(?P<unit>_ms|_milliseconds)?[a-z_]*['\"]?[:=] ?['\"]?"
    rf"(?P<number>{_FIGURE})"
)

# What a number of tokens means, by what stands directly behind it, and by what stands before it.
_TOKENS = either(r"tokens?|トークン|토큰|токен\w*|jetons?|令牌|词元", MORE.unit)
TOKENS = any_of(rf"[ -]?(?:\w+ )?(?:{_TOKENS})", rf"个? ?(?:{_TOKENS})")
CLAUSE_END = re.compile(
    r"[,;.()=\[\]>|。，；、/]| (?:and|but|while|whereas|however|your|you|y|e|und|et|aber|но|и)\b"
)
_ANY = rf"(?:[ -]?(?:{_TOKENS}))?(?: (?:of|in|for|from|as|were|the|your|text|total))* ?"
BEHIND = {
    "output": any_of(rf"""
        {_ANY}(?:tool )?(?:output|completion|generat|response|answer|new|max_new|max_tokens)
        {_ANY}(?:输出|生成|出力|출력|ответ|выход|salida|saida|sortie|ausgabe)
    """),
    "input": any_of(rf"""
        {_ANY}(?:input|prompt|message|request|function|tool|context tokens)
        {_ANY}(?:输入|提示|入力|プロンプト|입력|запрос|вход|entrada|entree|eingabe)
    """),
    "limit": any_of(rf"""
        {_ANY}(?:max|limit|context|window|allowed|上限|限制|上下文)
        {_ANY}(?:コンテキスト|制限|최대|한도|контекст|de contexto)
    """),
    "used": any_of(rf"""
        {_ANY}(?:is |are |was )?(?:exceed(?!ed *$)|over |greater|larger|longer|more than|too )
        {_ANY}(?:requested|asked|received|given|provided|used|were|angefragt|solicitad|demand)
        {_ANY}(?:超过|超出|превыш|supera|excede|depasse|uberschreit)
    """),
}
BEFORE = {
    "output": any_of(r"""
        output|completion|max_(?:completion_|new_|output_)?tokens|maxoutputtokens|generat\w+
        response
        answer|reply
        输出|輸出|生成|出力|출력|ответ|выход|salida|saida|sortie|ausgabe
    """),
    "input": any_of(
        r"""
        \binput|prompt|messages?\b|conversation|history|输入|輸入|提示|消息|入力|プロンプト
        メッセージ|입력|프롬프트|메시지
        промпт|\bввод|вход|запрос|сообщени|entrada|mensaje|mensage|entree|invite|requete|eingabe
        anfrage
        nachricht
    """,
        MORE.input,
    ),
    "used": any_of(
        r"""
        request\w*|asked|needs?|requires?|received|\bgot\b|given|contains?|\bhas\b|\bhave\b|had
        resulted
        used|actual|provided|current|sent|was|were
        请求|請求|当前|當前|实际|實際|收到|リクエスト|現在|요청|현재|получен|сейчас|solicit|recib
        recu|erhalten|aktuell|enthalt|umfasst|angefragt|angefordert|gesendet|ocupa|\btiene\b|\btem\b
        comporte|demand|содержит
    """,
        MORE.used,
    ),
    "limit": any_of(
        r"""
        max\w* (?:number of )?(?:input|prompt) (?:tokens?|length|size)
        max\w*|\bmost|limit\w*|allow\w*|support\w*|window|context\w*|capacity|up to|at most|only
        cannot exceed
        <=?|>|length is
        (?:less|fewer|lower|longer|greater|larger|more|bigger|smaller) than|or equal to|exceed\w*
        range
        between|should be
        (?:\[|\(|between |from )\d+ ?(?:,|and|to|-|~|到|至) ?$|n_ctx|max_model_len|max_seq_len|size
        budget
        超过|超過|超出|最大|上限|最多|限制|最长|支持|窗口|上下文|不能|范围
        コンテキスト|制限|超え|최대|한도|제한|컨텍스트|максим\w*|лимит\w*|контекст\w*|предел
        не более|превыша\w*
        maxim\w*|limite|context[oe]\w*|supera|excede|depasse|\w*hochst\w*|kontext\w*|grenze
        uberschreitet|ubersteigt|erlaubt|zulassig|unterstutzt|fenster|admit\w+|accept\w+|autoris\w+
        permit\w+|ventana|janela|fenetre|допустим\w+|上回|までの|보다
    """,
        MORE.limit,
    ),
}
