"""The words of refusals, by what they mean, in the languages that providers and relays write.

For `agent.providers.errors` and `agent.providers.refusal_numbers`. All are matched against
`refusal_text.uniform` text: lower case, no accents on Latin letters, no backticks, ASCII digits.
Languages in this order: English, Chinese, Japanese, Korean, Russian, Spanish, Portuguese, French,
German.
"""

from __future__ import annotations

import re

from agent.errors import RefusalKind

K = RefusalKind


def any_of(*patterns: str) -> re.Pattern[str]:
    """One pattern of several."""
    return re.compile("|".join(patterns))


# What was sent.
_INPUT = (
    r"\binputs?(?:\b|_)|prompt|\bmessages?\b|conversation|\brequest|\bcontext|history|payload|\btext\b",
    r"输入|輸入|提示|请求|請求|消息|訊息|内容|對話|对话|文本",
    r"入力|プロンプト|メッセージ|リクエスト|会話",
    r"입력|프롬프트|메시지|요청|대화",
    r"запрос|ввод|вход|промпт|сообщени|текст|диалог",
    r"entrada|mensaje|solicitud|peticion|conversacion|mensage[nm]|solicitacao|requisicao|conversa",
    r"\bentree|\binvite\b|requete|eingabe|anfrage|nachricht|unterhaltung",
)
# How much a model takes.
_WINDOW = (
    r"context[ _-]?(?:length|window|size|limit|budget)|\bcontext of\b|max\w* context|max_model_len",
    r"max_seq_len|n_ctx|max\w* (?:allowed )?(?:prompt|input|sequence|model|message|request) "
    r"(?:length|size|tokens?)|max\w* (?:number of|total) (?:input )?tokens|max\w* (?:allowed )?length",
    r"token (?:limit|budget|capacity|maximum)|(?:input|prompt|length) limit|model'?s? (?:\w+ )?"
    r"(?:limit|max)|max\w* (?:of )?\d+ tokens|max\w* tokens|limit of \d[\d,.]* ?(?:tokens|$)",
    r"上下文|token ?(?:数|數)?(?:量)?(?:上限|限制)|(?:长度|長度|模型|输入|輸入)(?:的)?(?:长度|長度)?"
    r"(?:上限|限制)|最大(?:的)?(?:输入|輸入|token|长度|長度|允许)|窗口|視窗",
    r"コンテキスト|コンテクスト|最大(?:トークン|入力|長)|トークン(?:数)?の?(?:上限|制限)|文脈",
    r"컨텍스트|콘텍스트|문맥|최대 (?:토큰|입력|길이)|토큰 (?:수 )?(?:제한|한도)",
    r"контекст|максимальн\w+ (?:\w+ )?(?:длин|числ|количеств|размер)|лимит\w* токен|токен",
    r"context[oe]|longitud maxima|comprimento maximo|(?:maximo|limite) de tokens|longueur maximale",
    r"(?:limite|maximum|nombre maximal) de (?:jetons|tokens)|kontext|maximale \w*(?:lange|anzahl)",
    r"token-?(?:limit|grenze)",
)
_EXCEEDS = (
    r"exceed|too (?:long|large|big|many|much)|(?:long|larg|bigg|high)er than|(?<!must be )greater than|more .{0,20}than",
    r"\bover (?:the|its|your)\b|overflow|surpass|beyond|above the|(?:less|fewer|smaller|lower) than",
    r"must (?:be|have) .{0,20}(?:at most|under|within|<|no more)|not fit|only supports?|up to|too small",
    r"support\w* (?:only|at most|a max)|no (?:more|longer) than|at most|not enough|ran out|run out",
    r"out of (?:context|room|space)|shorten|truncat|shorter|limited to|larger|reached|\d > \d|<=",
    r"reduce (?:the|your) (?:length|size|number|prompt|input|message)|cannot be processed|should be \[",
    r"超过|超過|超出|超长|超長|过长|過長|太长|太長|过大|過大|大于|大於|过多|不能超|上限|最多|缩短|縮短|超限",
    r"超え|超過|長すぎ|大きすぎ|多すぎ|上限|オーバー|以下|短く",
    r"초과|너무 (?:길|많|큽|크|긴)|넘|이하|줄여|줄이",
    r"превы|слишком (?:длин|больш|много|велик)|больше|не более|сократ|уменьш|не помеща|исчерпан",
    r"supera|excede|sobrepasa|demasiado|mayor que|reduzca|reduza|ultrapass|longo demais|muito long",
    r"maior que|depass|trop (?:long|grand|volumineu)|superieur|reduis|uberschr|ubersteig|langer als",
    r"zu (?:lang|gross|groß|viele)|großer als|mehr als|kurzen",
)
# Lengths in characters, of a field or of the input: no tokens.
CHARACTERS = any_of(r"string too long|string_too_long|\bcharacters?\b|字符|文字|글자|символ")
FIELD_TOO_LONG = any_of(
    r"'(?!messages\[\d+\]\.content|input)[^']*': string too long|string_too_long|(?:id|name|description|key)\b.{0,60} characters"
)
_TOKEN = r"token|トークン|토큰|токен|jeton|令牌|词元"  # noqa: S105 - a word of a language

INPUT = any_of(*_INPUT)
WINDOW = any_of(*_WINDOW)
EXCEEDS = any_of(*_EXCEEDS)
TOKEN = any_of(_TOKEN)

# Said so that nothing else can be meant.
OVERFLOW = any_of(
    r"context[ _-]?(?:length|window|size|limit)[ _](?:was |is |has been )?exceed",
    r"(?:prompt|input|inputs|conversation|message|messages|context|text|query|history)"
    r"(?: tokens?| text| length| context)?"
    r"(?: is| are| was| were|:)?(?: too|,? too) (?:long|large|big)\b(?! for type)",
    r"request (?:is |was |body )?too (?:long|large)(?! for)|payload too large|entity too large",
    r"exceed\w* .{0,30}context|out of context|context .{0,20}overflow|too many (?:input )?tokens",
    r"prompt exceeds|input length|(?:input|prompt) token count|longer than the model",
    r"(?:prompt|input)_?(?: ?is)?_?too_?long|token limit exceeded|tokens limit .{0,30}exceeded",
    r"payload size exceeds|request (?:size )?exceeds the max|exceeds the maximum (?:allowed )?(?:size|length)",
    r"max_(?:\w+_)?tokens must be at least 1, got -",
    r"'(?:input|(?:messages|input)\[\d+\]\.content[^']{0,24})': string too long",
    r"zu viele token|demasiados tokens|trop de (?:jetons|tokens)|muitos tokens|tokens demais|слишком много токенов",
    r"トークン.{0,6}多すぎ|토큰.{0,6}너무 많|token ?(?:数|數)?(?:过多|過多|太多)",
    r"model_context_window_exceeded|reduce the length of (?:the|your) (?:message|prompt|input)",
    r"too large to process|(?:maximum|max) (?:prompt|input) length",
    r"(?:提示|输入|輸入|请求|prompt|内容|文本|消息|对话|上下文|token).{0,12}"
    r"(?:超长|超長|过长|過長|太长|太長)",
    r"(?:プロンプト|入力|メッセージ|会話|リクエスト).{0,10}長すぎ",
    r"(?:프롬프트|입력|메시지|요청|대화).{0,10}너무 (?:길|깁|긴|큽)",
    r"(?:запрос|промпт|сообщение|текст|ввод|диалог)\w*.{0,12}слишком (?:длин|больш|велик)",
    r"(?:prompt|entrada|mensaje|mensagem|conversa\w*|texto) .{0,14}(?:demasiado larg|muito long|longo? demais)",
    r"(?:prompt|invite|entree|message|requete|texte) .{0,10}trop long",
    r"(?:prompt|eingabe|nachricht|anfrage|text|kontext) .{0,10}zu (?:lang|groß|gross)",
)

_OUTPUT = (
    r"max_(?:completion_|new_|output_)?tokens(?:_to_sample)?|max[ _]?(?:completion|new|output|response)"
    r"[ _]?tokens|maxoutputtokens|maxtokens|max_gen_len|num_predict|n_predict|\bmax tokens\b",
    r"(?:output|completion|response|generated?|generation)[ _](?:tokens?|length|limit)",
    r"maximum tokens you requested|number of (?:new|output|generated) tokens",
    r"最大?(?:输出|輸出|生成)(?:长度|長度| ?token)?|(?:输出|輸出|生成)(?:长度|長度| ?token)|最大回复",
    r"出力トークン|最大出力|生成トークン|출력 토큰|최대 출력|생성 토큰|выходн\w+ токен|токен\w* ответа",
    r"tokens? de (?:salida|saida|sortie)|ausgabe-?token|jetons de sortie|ausgabelange",
)
_TOO_MUCH = (
    r"too (?:large|high|big|many)|exceed|(?<!must be )greater than|larger than|above|higher than",
    r"(?:must|should|can|may)(?:not| not)? be (?:less|at most|<|no more|lower|smaller|between|in|within"
    r"|under|larger|greater than (?:the|\d))",
    r"less than or equal|at most|range|between \d|out of range|supports? (?:only|at most|up to)",
    r"only supports|up to \d|maximum (?:value|allowed|is|of)|lower than \d|limited to|limit (?:is|of)",
    r"超过|超過|超出|大于|大於|范围|範圍|最大值|上限|不能超|过大|過大|不得|应在|應在|之间",
    r"超え|超過|上限|範囲|大きすぎ|초과|범위|너무 (?:큽|크|많)|превы|диапазон|больше|слишком",
    r"supera|excede|rango|intervalo|depass|superieur|uberschr|ubersteig|bereich|zu (?:groß|hoch)",
)
OUTPUT = any_of(*_OUTPUT)
# The answer that was asked for, and that it is too much; or the value's range before its name.
OUTPUT_CAP = any_of(
    rf"(?:{'|'.join(_OUTPUT)}).{{0,90}}?(?:{'|'.join(_TOO_MUCH)})",
    r"(?:invalid|illegal|range of|value of|value for|valor de|wert fur) (?:parameter )?"
    r"['\"]?max_(?:completion_|new_|output_)?tokens",
    r"available_tokens",
    r"max\w* (?:number of )?(?:output|completion|generated) tokens[^.]{0,40}? (?:is|are|=|:) ?\d",
    r"(?:超过|超出|大于)[^,。，]{0,12}(?:最大)?(?:输出|生成)(?:长度|token)",
    r"(?:exceed|over|greater)\w* .{0,40}(?:maximum|max|limit) .{0,20}(?:output|completion) tokens",
)
# A parameter that the server does not know, whatever it is called.
NOT_A_CAP = any_of(
    r"(?:unsupported|unrecognized|unknown|unexpected|extra) .{0,20}(?:parameter|argument|field|input|keyword|key)",
    r"not supported with|not permitted|must be greater than|不支持",
)
# Input and answer together: only the numbers can tell which of the two is at fault.
SUM = any_of(
    r"\+ ?(?:max_|the max|output|completion|new)",
    r"(?:input|inputs|prompt|message|messages)\b[^.]{0,40}(?:and|plus|\+|&) (?:the |requested )?"
    r"(?:max_|maximum|output|completion|new)[^.]{0,25}(?:exceed|must|is (?:more|larger|greater)|>)",
    r"sum of|total of|in total|combined|together|max_tokens must be at least 1, got -",
    r"(?:输入|输入token|提示).{0,12}(?:与|和|加|\+).{0,12}(?:输出|max_|生成)",
)

# A window of time: what is counted in it is no property of the model.
PERIOD = any_of(
    r"\bper[ _-](?:second|sec|minute|min|hour|day|month)|/ ?(?:s|sec|second|min|minute|h|hour|d|day|month)\b",
    r"per_minute|per_day|perminute|perday|\b[ioi]?[tr]p[msdh]\b|\bqp[sm]\b|\btps\b|a minute|daily|hourly",
    r"每分|每秒|每天|每日|每小时|分钟内|秒内|/分|今日|毎分|毎秒|1 ?分(?:間|あたり)|1日|분당|초당|시간당|일일",
    r"в минуту|в секунду|в час|в день|в сутки|por (?:minuto|segundo|hora|dia)|par (?:minute|seconde|heure|jour)",
    r"pro (?:minute|sekunde|stunde|tag)",
)
RATE = any_of(
    r"rate[ _-]?limit|throttl|too many (?:concurrent |parallel |api )?(?:requests|calls)|slow down",
    r"too many tokens, please wait|too many tokens per|rate increased too quickly|request limit",
    r"(?:requests?|calls?) too (?:often|frequent)|concurren\w+ .{0,40}(?:limit|exceed|reach)",
    r"quota exceeded for|resource[ _](?:has been )?exhausted|limit for this period|rate of requests",
    r"(?:maximum|max) (?:number of )?(?:concurrent|parallel)|(?:qps|rpm|tpm|tpd|rpd) .{0,20}(?:limit|reach)",
    r"(?:rate|frequency|speed) (?:is )?(?:exceeded|too high|limited)|tier capacity exceeded|burst",
    r"频率|頻率|频繁|頻繁|速率|限流|(?:请求|請求|访问|調用|调用)(?:次数|量)?(?:数)?(?:过多|過多|过快|过高|超限)|并发",
    r"限速|流控|リクエストが多|レート(?:制限|リミット)|流量制限|頻度|요청이 (?:너무 )?많|속도 제한|요청 (?:한도|제한|빈도)",
    r"слишком (?:много|част\w+) .{0,5}запрос|(?:лимит|частот|количеств)\w* .{0,10}запросов|част\w+ запрос",
    r"demasiadas (?:solicitudes|peticiones)|limite de (?:solicitudes|velocidad|frecuencia|tasa|peticiones)",
    r"muitas (?:solicitacoes|requisicoes)|limite de (?:taxa|requisicoes|solicitacoes)|trop de (?:requetes|demandes)",
    r"limite de (?:debit|requetes|frequence)|zu viele anfragen|(?:raten|anfrage)\w*(?:limit|begrenzung)",
)
# The one request is larger than what the period allows at all.
REQUEST_TOO_LARGE = any_of(
    r"request too large for",
    r"tokens per min\w* \([a-z]*tpm\): limit.{0,80}must be reduced",
    r"(?:single|one|this) request .{0,60}(?:larger|greater|more|bigger) than .{0,60}per[ -]?(?:minute|min)",
)
MINUTE_LIMIT = any_of(
    r"limit(?: is|:| of)? ?(?P<number>\d{2,9})(?= ?(?:tokens|,|\.|;|\)|/| per|$))"
)
REQUESTED = any_of(
    r"request(?:ed|s|ing)?(?: is|:| of| for| has| contains| needs)? ?(?:about )?(?P<number>\d{2,9})\b"
)

QUOTA = any_of(
    r"plan and billing|overdue|past due|arrear|good standing|credit balance|account balance",
    r"insufficient[ _]?(?:account |user |token )?(?:balance|quota|credit|fund)|balance .{0,20}"
    r"(?:insufficient|too low|not enough|exhausted|depleted)|not enough (?:credit|balance|fund|money)",
    r"(?:out of|purchase|buy|used all available|need more|requires more|top up) (?:more |your )?credits?|no (?:more )?credits? (?:left|remain|avail)",
    r"credits? (?:limit|exhausted|depleted|required|have been|are)|credit limit|(?:un|pre)paid",
    r"billing (?:hard |account |has |is )?(?:limit|not|to be|disabled|been|inactive|address)"
    r"|requires billing|billing_(?:hard_limit|not_active|disabled)|enable billing",
    r"payment (?:method|required|failed|is required)|invoice|spend(?:ing)? (?:limit|cap)|budget has been",
    r"(?:exceed|over)\w* .{0,20}budget|max budget|monthly (?:usage|quota|budget|limit|spend|token)",
    r"free (?:tier|trial|quota|allocation|credits?|allowance|plan).{0,50}(?:exhaust|used up|exceed|expired|over|ended)",
    r"(?:exhaust|used up|use up|ran out of|run out of|deplet)\w* .{0,40}(?:quota|credit|free|balance|allocation|funds)",
    r"(?:quota|credit|free|balance|allocation|funds|allowance).{0,40}(?:exhaust|used up|deplet|run out)",
    r"usage limits?\b|account .{0,40}suspended|recharge|subscription .{0,20}(?:expired|inactive|required)",
    r"余额|餘額|欠费|欠費|充值|儲值|账单|帳單|(?:额度|額度|资源包?|資源包?|配额|配額|套餐|点数|流量包).{0,6}"
    r"(?:用完|用尽|用盡|耗尽|耗盡|不足|已超)|停服|付费|購買|购买|续费",
    r"残高|クレジット.{0,6}(?:不足|使い)|支払|請求|課金|利用枠|잔액|크레딧|결제|요금|충전",
    r"недостаточно (?:средств|денег|баланс)|баланс|оплат|задолжен|пополн|(?:исчерпан|закончил)\w* .{0,20}(?:квот|средств|пакет)",
    r"saldo|creditos? (?:insuf|agotad|esgotad)|facturacion|faturamento|\bpago\b|pagamento",
    r"\bsolde\b|credit insuffisant|facturation|paiement|guthaben|abrechnung|zahlung|kontingent .{0,20}(?:erschopft|aufgebraucht)",
)
# A period's quota in the words for a lack of money: DashScope's documentation gives throttling as
# the cause, and Google names the metric.
QUOTA_OF_A_PERIOD = any_of(
    r"throttling\.|allocated quota exceeded|aliyun|alibabacloud|quota exceeded for (?:quota )?metric",
    r"rate limit exceeded|per[ _]minute",
)

CONTENT_FILTER = any_of(
    r"content[ _-](?:management|filter|policy|moderation|safety)|content exists risk|inappropriate",
    r"data may contain|(?:sensitive|unsafe|harmful|prohibited|illegal|offensive|explicit|toxic) "
    r"(?:content|text|info|word|material|topic)|new_sensitive|flagged|moderation|profan",
    r"safety (?:system|setting|filter|reason|polic|guideline|check|concern|violation)|due to safety",
    r"(?:blocked|rejected|refused|filtered) .{0,40}(?:safety|polic|filter|moderat|guardrail)",
    r"usage polic|acceptable use|high risk|violat\w* .{0,60}(?:polic|guideline|terms|rules)|safety_check|polic\w+ violation|guardrail|responsible ?ai",
    r"敏感|违规|違規|违法|違法|不安全|安全审核|内容审核|内容安全|审核(?:未|不)|不当内容|涉黄|涉政|风险内容",
    r"不適切|コンテンツ.{0,4}(?:ポリシー|フィルタ)|ポリシー.{0,4}違反|有害|부적절|콘텐츠 (?:정책|필터)|유해|정책.{0,8}위반",
    r"недопустим\w+ (?:содерж|контент)|политик\w+ (?:содерж|контент|безопасн|использ)|запрещенн?\w+ (?:содерж|контент)",
    r"чувствительн\w+ (?:тем|содерж|контент)|наруша\w+ .{0,30}(?:правил|политик)|фильтр\w* (?:содерж|контент)",
    r"contenido (?:inapropiado|inadecuado|sensible|prohibido|danino)|(?:politica|filtro|moderacion) de(?:l)? contenido",
    r"conteudo (?:inadequado|improprio|sensivel|proibido)|(?:politica|filtro|moderacao) de conteudo",
    r"contenu (?:inapproprie|sensible|interdit)|(?:politique|filtr\w+|moderation) d[eu] contenu",
    r"(?:unangemessen|anstoßig|unzulassig|verboten)\w* inhalt|inhalts?(?:richtlinie|filter)|richtlinien? verst",
)

_PICTURE = (
    r"(?:image|picture|photo|video|audio|media|pdf|attachment|vision|mime|multimodal (?:content|file|data|input)"
    r"|file(?= (?:size|format|type|exceed|is too))|图片|图像|圖片|圖像|视频|音频|文件|画像|動画|音声|이미지|동영상"
    r"|изображени|картин|видео|imagen|imagem|\bbild\b|\bbilder|grafik)"
)
_PICTURE_FAULT = (
    r"(?:exceed|too (?:large|big|many|small)|unsupported|invalid|larger than|bigger than|over \d|more than|mismatch|not (?:be |appear |a )?(?:support|valid|to be|process|download|fetch"
    r"|decode|meet|load)|corrupt|dimension|could not|cannot|can't|at most|may be provided|failed|too long|not allowed"
    r"|limit|is only supported|不支持|不支援|超过|超過|超出|过大|過大|无效|無效|失败|格式|错误|損"
    r"|超え|大きすぎ|対応して|無効|초과|지원|너무|유효|превы|слишком|не поддерж|недопустим|поврежд"
    r"|supera|excede|demasiado|no (?:es )?(?:compatible|valida|soporta)|invalid|muito|trop|depass|pas (?:valide|pris)"
    r"|zu groß|ungultig|nicht unterstutzt|uberschr)"
)
MEDIA = any_of(
    rf"{_PICTURE}(?:(?!token|message).){{0,70}}?{_PICTURE_FAULT}",
    r"(?:unsupported|unknown|unrecogni[sz]ed|bad|illegal|invalid|corrupt\w*|that support|unable to (?:process|download|fetch|read|load|decode)|could not (?:process|"
    r"download|fetch|read|load|decode)|failed to (?:process|download|fetch|load|decode)|cannot (?:process|read|"
    r"identify|fetch|download)|too many|at most \d+|maximum of \d+|max \d+|not support(?:ed)?|more than \d+)"
    r"(?: \w+){0,3} (?:image|picture|video|audio|media|pdf|multimodal (?:content|file|data)|mime|attachment|vision)",
    r"not a (?:multimodal|vision) model|mmproj|(?:不支持|无法处理|下载).{0,6}(?:图片|图像|视频|音频|多模态|视觉)",
)

_BAD = r"\b(?:incorrect|invalid|wrong|missing|expired|revoked|malformed|no|unknown|inactive|disabled)"
AUTH = any_of(
    rf"{_BAD}(?: \w+)? (?:x-)?(?:api|access|auth\w*|bearer|security|subscription|secret|session)?[ _-]?"
    r"(?:key|credentials?|authentication|authorization|bearer|api token|access token)\b",
    r"(?:api|access|auth\w*|bearer|security|subscription|secret|session)[ _-]?(?:key|token)s?\b.{0,50}"
    r"(?:invalid|not valid|expired|incorrect|missing|required|revoked|disabled|wrong|not (?:found|exist|provided)|inactive)",
    r"unauthori[sz]ed|unauthenticated|authenticat\w+ (?:fail|error|required)|permission denied|access denied",
    r"forbidden|not authorized|not have (?:access|permission)|no (?:access|permission)|login fail",
    r"organization has been disabled|account .{0,30}(?:deactivated|disabled|deleted|banned|not active)",
    r"location is not supported|(?:country|region|territory).{0,40}not (?:supported|available)",
    r"\bmodel\b[^,;]{0,80}?(?:not exist|not found|decommission|deprecated|no longer|retired|(?:is not|isn't) (?:a valid|available|"
    r"supported|served|deployed|recogni|open)|unknown|not allowed|unavailable in)|(?:unknown|invalid|no such|unsupported|"
    r"unrecognized) model\b|not found the model|model_not_found|not a valid model",
    r"(?:密钥|密鑰|api ?key|令牌|token|凭证|签名).{0,6}(?:无效|無效|错误|錯誤|不正确|过期|失效|不存在|为空)",
    r"(?:无效|無效|错误|非法)的? ?.{0,6}(?:密钥|密鑰|key|令牌|凭证|token)|身份验证|身份認證|鉴权|认证失败|验证失败|未授权",
    r"无权|無權|权限|權限|模型.{0,12}(?:不存在|未找到|已下线|未开通)|(?:不存在|未找到|找不到).{0,6}模型|未开通",
    r"キー.{0,10}(?:無効|正しく|不正|間違|期限)|認証|権限|モデル.{0,24}(?:見つかり|存在し)|アクセスが拒否",
    r"키.{0,10}(?:유효하지|잘못|올바르지|만료)|인증|권한|모델.{0,24}(?:찾을 수 없|존재하지)|접근이 거부",
    r"(?:неверн|недействител|некорректн|неправильн)\w* .{0,14}(?:api|ключ|токен)|ключ.{0,20}(?:недейств|невер|истек)",
    r"авториз|аутентиф|доступ\w* .{0,12}(?:запрещ|отказ)|нет (?:доступа|прав)|модель.{0,40}не (?:найден|существ)",
    r"clave.{0,30}(?:no es valida|invalida|incorrecta)|no autorizado|autenticacion|modelo.{0,40}(?:no|nao) (?:existe|se enc|encontrad|foi enc)",
    r"chave.{0,30}(?:invalida|incorreta|nao e valida)|nao autorizado|autenticacao|acceso denegado|acesso negado",
    r"\bcle\b.{0,30}(?:pas valide|invalide|incorrecte|expire)|non autorise|authentification|acces refuse",
    r"modele.{0,40}(?:introuvable|n'existe pas)|schlussel.{0,30}(?:ungultig|falsch|abgelaufen)|nicht autorisiert",
    r"authentifizierung|zugriff verweigert|ungultig\w* .{0,12}schlussel|modell.{0,40}(?:nicht gefunden|existiert nicht)",
)

FORMAT = any_of(
    r"tool_use|tool_result|tool_calls?|tool call|tool result|toolresult|tooluse|tool_choice|tool choice|tool names",
    r"\bfunction[ _]?(?:call|response|name)|reasoning|thinking|signature|prefill|schema|malformed|deserializ",
    r"non-empty|non-whitespace|at least one message|must not be empty|cannot be empty|(?:is|are|was) empty",
    r"\broles?\b|alternat|must (?:start|begin|end|alternate|be followed|match)|start with a user",
    r"does(?: not|n't) support (?:\w+ ){0,3}(?:tools?|functions?|system|assistant|stream|param|temperature|role)",
    r"pattern|text is not set|must (?:contain|include|not)|must be (?:a |an |of |in |within |between |one |set|greater|at least|valid|string|object|positive|non)",
    r"expected .{0,30}(?:string|object|array|list|got|but)|extra inputs|extra_forbidden|field required|input should be",
    r"invalid (?:type|value|json|schema|request body|argument|format|field|messages|content|role)\b|invalid '",
    r"(?:unsupported|unrecognized|unknown|unexpected|missing|invalid|required|duplicate)(?: request| required| or invalid)? "
    r"(?:parameter|argument|field|value|key|property|keyword|item|role|message|content type)",
    r"not permitted|is required|not allowed|invalid request\b|could not parse|failed to parse|pars(?:e|ing) error|validation error",
    r"following item|chat template|--jinja|--enable-auto|must be specified|not specified|should be a valid",
    r"参数(?:有误|错误|非法|无效|异常|校验)|參數(?:有誤|錯誤|無效)|非法|格式(?:错误|有误|不正确)|不能为空|不可为空|必须|缺少|请检查文档|角色",
    r"パラメータ.{0,6}(?:無効|不正|誤)|形式が|必須|空に|매개변수|형식|필수|비어|параметр|формат|обязател|пуст(?:ой|ым|ое)|роль",
    r"parametro|formato|obligatori|obrigatori|\bvaci[oa]|vazi[oa]|parametre|obligatoire|\bvide\b|ungultige?r? (?:parameter|wert|anfrage)|erforderlich|\bleer\b|\brolle",
)
TRANSIENT = any_of(
    r"overload|unavailable|internal (?:server )?error|server error|timed? ?out|timeout|try again|retry|busy|over capacity",
    r"upstream|connection|bad gateway|high demand|temporar|unexpected error|繁忙|稍后|稍後|重试|内部错误|超时|过载|服务异常",
    r"混み合|しばらく|再試行|内部エラー|タイムアウト|과부하|잠시|내부 오류|시간 초과|перегруж|недоступ|позже|внутренн\w+ ошибк",
    r"sobrecarg|no disponible|indisponivel|mas tarde|mais tarde|surcharg|plus tard|indisponible|uberlast|nicht verfugbar|spater",
)
OVERLOADED = any_of(
    r"overload|over capacity|high demand|server busy|过载|繁忙|과부하|перегруж|uberlast|surcharg"
)

# Of the wait: numbers with their units, after words for later or before them.
WAIT_UNITS = (
    (r"days?|天|日|день|дня|дней|d", 86_400.0),
    (r"hours?|hrs?|小时|小時|時間|час(?:а|ов)?|horas?|heures?|stunden?|시간|h", 3_600.0),
    (r"min(?:ute)?[sn]?|分钟|分鐘|分|минут[аыу]?|minutos?|분|m", 60.0),
    (r"ms|milliseconds?|毫秒|ミリ秒", 0.001),
    (r"sec(?:ond)?s?|秒钟|秒鐘|秒|секунд[аыу]?|segundos?|secondes?|sekunden?|초|s", 1.0),
)
_UNIT = "|".join(pattern for pattern, _ in WAIT_UNITS)
_AMOUNT = rf"\d{{1,9}}(?:\.\d{{1,9}})? ?(?:{_UNIT})(?![a-zа-я])"
WAIT_PART = re.compile(rf"(?P<number>\d{{1,9}}(?:\.\d{{1,9}})?) ?(?P<unit>{_UNIT})(?![a-zа-я])")
WAIT = any_of(
    rf"(?:again|retry\w*|wait\w*|available|resets?|重试|等待|再试|повтор\w*|подожд\w*|через|nuevo|novamente|"
    rf"nouveau|reessay\w*|patient\w*|warten)[^\d]{{0,24}}{_AMOUNT}(?:,? ?{_AMOUNT})*",
    rf"{_AMOUNT}(?:,? ?{_AMOUNT})* ?(?:后|後|之后|以后|あと|待って|후|뒤|erneut|noch einmal|de nuevo|novamente)",
)
WAIT_PLAIN = re.compile(
    r"retry[_-]?after(?P<unit>_ms|_milliseconds)?[a-z_]*['\"]?[:=] ?['\"]?(?P<number>\d{1,9}(?:\.\d{1,9})?)"
)

# What a number of tokens means, by what stands directly behind it, and by what stands before it.
TOKENS = any_of(rf"[ -]?(?:\w+ )?(?:{_TOKEN})|个? ?(?:{_TOKEN})")
CLAUSE_END = re.compile(
    r"[,;.()=\[\]>|。，；、/]| (?:and|but|while|whereas|however|your|you|y|e|und|et|aber|но|и)\b"
)
_ANY = rf"(?:[ -]?(?:{_TOKEN})s?)?(?: (?:of|in|for|from|as|were|the|your|text|total))* ?"
BEHIND = {
    "output": any_of(
        rf"{_ANY}(?:tool )?(?:output|completion|generat|response|answer|new|max_new|max_tokens|输出|生成|出力|출력|ответ|выход|salida|saida|sortie|ausgabe)"
    ),
    "input": any_of(
        rf"{_ANY}(?:input|prompt|message|request|function|tool|context tokens|输入|提示|入力|プロンプト|입력|запрос|вход|entrada|entree|eingabe)"
    ),
    "limit": any_of(
        rf"{_ANY}(?:max|limit|context|window|allowed|上限|限制|上下文|コンテキスト|制限|최대|한도|контекст|de contexto)"
    ),
    "used": any_of(
        rf"{_ANY}(?:is |are |was )?(?:exceed|over |greater|larger|longer|more than|too |requested|asked|angefragt|solicitad|demand|received|given|provided|used|were|超过|超出|превыш|supera|excede|depasse|uberschreit)"
    ),
}
BEFORE = {
    "output": any_of(
        r"output|completion|max_(?:completion_|new_|output_)?tokens|maxoutputtokens|generat\w+|response|answer|reply",
        r"输出|輸出|生成|出力|출력|ответ|выход|salida|saida|sortie|ausgabe",
    ),
    "input": any_of(
        r"\binput|prompt|messages?\b|conversation|history|输入|輸入|提示|消息|入力|プロンプト|メッセージ|입력|프롬프트|메시지",
        r"промпт|\bввод|вход|запрос|сообщени|entrada|mensaje|mensage|entree|invite|requete|eingabe|anfrage|nachricht",
    ),
    "used": any_of(
        r"request\w*|asked|needs?|requires?|received|\bgot\b|given|contains?|\bhas\b|\bhave\b|had|resulted|used|actual|provided|current|sent|was|were",
        r"请求|請求|当前|當前|实际|實際|收到|リクエスト|現在|요청|현재|получен|сейчас|solicit|recib|recu|erhalten|aktuell",
    ),
    "limit": any_of(
        r"max\w*|limit\w*|allow\w*|support\w*|window|context\w*|capacity|up to|at most|only|cannot exceed|<=?|>|length is",
        r"(?:less|fewer|lower|longer|greater|larger|more|bigger|smaller) than|or equal to|exceed\w*|range|between|should be",
        r"(?:\[|\(|between |from )\d+ ?(?:,|and|to|-|~|到|至) ?$|n_ctx|max_model_len|max_seq_len|size|budget|超过|超過|超出|最大|上限|最多|限制|最长|支持|窗口|上下文|不能|范围",
        r"コンテキスト|制限|超え|최대|한도|제한|컨텍스트|максим\w*|лимит\w*|контекст\w*|предел|не более|превыша\w*",
        r"maxim\w*|limite|context[oe]\w*|supera|excede|depasse|\w*hochst\w*|kontext\w*|grenze|uberschreitet|ubersteigt",
    ),
}
