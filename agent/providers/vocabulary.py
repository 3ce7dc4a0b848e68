"""The words of refusals, by what they mean, in the languages that providers and relays write.

For `agent.providers.refusal_kind` and `agent.providers.refusal_numbers`. All are matched against
`refusal_text.uniform` text: lower case, no accents on Latin letters, no backticks, ASCII digits.
Languages in this order: English, Chinese, Japanese, Korean, Russian, Spanish, Portuguese, French,
German.
"""

from __future__ import annotations

import re


def either(*texts: str) -> str:
    """The lines of the texts as alternatives of one pattern."""
    return "|".join(line.strip() for text in texts for line in text.splitlines() if line.strip())


def any_of(*texts: str) -> re.Pattern[str]:
    """What any line of the texts says."""
    return re.compile(either(*texts))


# What was sent.
_INPUT = r"""
    \binputs?(?:\b|_)|prompt|\bmessages?\b|conversation|\brequest|\bcontext|history|payload|\btext\b
    输入|輸入|提示|请求|請求|消息|訊息|内容|對話|对话|文本
    入力|プロンプト|メッセージ|リクエスト|会話
    입력|프롬프트|메시지|요청|대화
    запрос|ввод|вход|промпт|сообщени|текст|диалог
    entrada|mensaje|solicitud|peticion|conversacion|mensage[nm]|solicitacao|requisicao|conversa
    \bentree|\binvite\b|requete|eingabe|anfrage|nachricht|unterhaltung
"""
# How much a model takes.
_WINDOW = r"""
    context[ _-]?(?:length|window|size|limit|budget)|\bcontext of\b|max\w* context|max_model_len
    max_seq_len|n_ctx
    max\w* (?:allowed )?(?:prompt|input|sequence|model|message|request) (?:length|size|tokens?)
    max\w* (?:number of|total) (?:input )?tokens|max\w* (?:allowed )?length
    token (?:limit|budget|capacity|maximum)|(?:input|prompt|length) (?:limit|capacity)
    model'?s? (?:\w+ )?(?:limit|max)|max\w* (?:of )?\d+ tokens|max\w* tokens
    limit of \d[\d,.]* ?(?:tokens|$)
    上下文|token ?(?:数|數)?(?:量)?(?:上限|限制)
    (?:长度|長度|模型|输入|輸入)(?:的)?(?:长度|長度)?(?:上限|限制)
    最大(?:的)?(?:输入|輸入|token|长度|長度|允许)|窗口|視窗
    コンテキスト|コンテクスト|最大(?:トークン|入力|長)|トークン(?:数)?の?(?:上限|制限)|文脈
    컨텍스트|콘텍스트|문맥|최대 (?:토큰|입력|길이)|토큰 (?:수 )?(?:제한|한도)
    контекст|максимальн\w+ (?:\w+ )?(?:длин|числ|количеств|размер)|лимит\w* токен|токен
    context[oe]|longitud maxima|comprimento maximo|(?:maximo|limite) de tokens|longueur maximale
    (?:limite|maximum|nombre maximal) de (?:jetons|tokens)|kontext|maximale \w*(?:lange|anzahl)
    token-?(?:limit|grenze)
"""
_EXCEEDS = r"""
    exceed|too (?:long|large|big|many|much)|(?:long|larg|bigg|high)er than|(?<!must be )greater than
    more .{0,20}than
    \bover (?:the|its|your|our|this)\b|overflow|surpass|beyond|above the
    (?:less|fewer|smaller|lower) than
    must (?:be|have) .{0,20}(?:at most|under|within|<|no more)|not fit|only supports?|up to
    too small
    support\w* (?:only|at most|a max)|no (?:more|longer) than|at most|not enough|ran out|run out
    out of (?:context|room|space)|shorten|truncat|shorter|limited to|larger|reached|\d > \d|<=
    reduce (?:the|your) (?:length|size|number|prompt|input|message)|cannot be processed|should be \[
    超过|超過|超出|超长|超長|过长|過長|太长|太長|过大|過大|大于|大於|过多|不能超|上限|最多|缩短|縮短
    超限
    超え|超過|長すぎ|大きすぎ|多すぎ|上限|オーバー|以下|短く
    초과|너무 (?:길|많|큽|크|긴)|넘|이하|줄여|줄이
    превы|слишком (?:длин|больш|много|велик)|больше|не более|сократ|уменьш|не помеща|исчерпан
    переполн
    supera|excede|sobrepasa|demasiado|mayor que|reduzca|reduza|ultrapass|longo demais|muito long
    maior que|depass|trop (?:long|grand|volumineu)|superieur|reduis|uberschr|ubersteig|langer als
    zu (?:lang|gross|groß|viele)|großer als|mehr als|kurzen
"""
# Lengths in characters, of a field or of the input: no tokens.
CHARACTERS = any_of(r"""
    string too long|string_too_long|array too long|\bcharacters?\b|字符|文字|글자|символ
""")
FIELD_TOO_LONG = any_of(r"""
    '(?!messages(?:\[\d+\]\.content|')|input)[^']*': (?:string|array) too long|string_too_long
    (?:id|name|description|key)\b.{0,60} characters
""")
TOKEN = any_of("token|トークン|토큰|токен|jeton|令牌|词元")

INPUT = any_of(_INPUT)
WINDOW = any_of(_WINDOW)
EXCEEDS = any_of(_EXCEEDS)

# Said so that nothing else can be meant.
OVERFLOW = any_of(r"""
    context[ _-]?(?:length|window|size|limit)[ _](?:was |is |has been )?exceed
    (?:prompt|input|conversation|message|context|text|query)s?(?: \w+)?(?: is| are)? too (?:long|large)
    (?:prompt|input|conversation|message|context) (?:is )?too big|history .{0,12}too (?:long|large)
    request (?:is |was |body )?too (?:long|large)(?! for)|payload too large|entity too large
    exceed\w* .{0,30}context|out of context|context .{0,20}overflow|too many (?:input )?tokens
    prompt,? too long|prompt exceeds|input length|(?:input|prompt) token count|longer than the model
    (?:prompt|input)_?(?: ?is)?_?too_?long|token limit exceeded|tokens limit .{0,30}exceeded
    payload size exceeds|request (?:size )?exceeds the max
    exceeds the maximum (?:allowed )?(?:size|length)
    max_(?:\w+_)?tokens must be at least 1, got -
    '(?:input|(?:messages|input)\[\d+\]\.content[^']{0,24})': string too long
    'messages': array too long
    zu viele token|demasiados tokens|trop de (?:jetons|tokens)|muitos tokens|tokens demais
    слишком много токенов
    トークン.{0,6}多すぎ|토큰.{0,6}너무 많|token ?(?:数|數)?(?:过多|過多|太多)
    model_context_window_exceeded|reduce the length of (?:the|your) (?:message|prompt|input)
    too large to process|(?:maximum|max) (?:prompt|input) length
    (?:提示|输入|輸入|请求|prompt|内容|文本|消息|对话|记录|上下文|token).{0,12}(?:超长|超長|过长|過長|太长|太長)
    (?:输入|輸入|提示|上下文).{0,4}(?:长度|長度).{0,6}(?:超过|超過|超出|超限|大于)
    (?:プロンプト|入力|メッセージ|会話|リクエスト).{0,10}長すぎ
    (?:프롬프트|입력|메시지|요청|대화).{0,10}너무 (?:길|깁|긴|큽)
    (?:запрос|промпт|сообщение|текст|ввод|диалог)\w*.{0,12}слишком (?:длин|больш|велик)
    (?:prompt|entrada|mensa\w+|conversa\w*|texto) .{0,14}(?:demasiado larg|muito long|longo? demais)
    (?:prompt|invite|entree|message|requete|texte) .{0,10}trop long
    (?:prompt|eingabe|nachricht|anfrage|text|kontext|konversation|gesprach) .{0,10}zu (?:lang|gro)
""")

_OUTPUT = r"""
    max_(?:completion_|new_|output_)?tokens(?:_to_sample)?
    max[ _]?(?:completion|new|output|response)[ _]?tokens|maxoutputtokens|maxtokens|max_gen_len
    num_predict|n_predict|\bmax tokens\b
    (?:output|completion|response|generated?|generation)[ _](?:tokens?|length|limit)
    maximum tokens you requested|number of (?:new|output|generated) tokens
    最大?(?:输出|輸出|生成)(?:长度|長度| ?token)?|(?:输出|輸出|生成)(?:长度|長度| ?token)|最大回复
    出力トークン|最大出力|生成トークン|출력 토큰|최대 출력|생성 토큰|выходн\w+ токен|токен\w* ответа
    tokens? de (?:salida|saida|sortie)|ausgabe-?token|jetons de sortie|ausgabelange
"""
_TOO_MUCH = r"""
    too (?:large|high|big|many)|exceed|(?<!must be )greater than|larger than|above|higher than
    over (?:the|this|its|your|our|\d)
    (?:must|should|can|may)(?:not| not)? be (?:less|at most|<|no more|lower|smaller|between|in|within)
    (?:must|should|can|may)(?:not| not)? be (?:under|larger|greater than (?:the|\d))
    less than or equal|at most|range|between \d|out of range|supports? (?:only|at most|up to)
    only supports|up to \d|maximum (?:value|allowed|is|of)|lower than \d|limited to|limit (?:is|of)
    超过|超過|超出|大于|大於|范围|範圍|最大值|上限|不能超|过大|過大|不得|应在|應在|之间|小于|以内
    超え|超過|上限|範囲|大きすぎ|以下|초과|범위|너무 (?:큽|크|많)|이하|미만|превы|диапазон|больше
    слишком|не более|меньше
    supera|excede|rango|intervalo|menor|depass|superieur|inferieur|uberschr|ubersteig|bereich
    hochstens
    zu (?:groß|hoch)
"""
OUTPUT = any_of(_OUTPUT)
# The answer that was asked for, and that it is too much; or the value's range before its name.
OUTPUT_CAP = any_of(rf"""
    (?:{either(_OUTPUT)}).{{0,90}}?(?:{either(_TOO_MUCH)})
    (?:invalid|illegal|range of|value (?:of|for)|valor de|wert fur) (?:parameter )?['"]?max_\w*tokens
    available_tokens|too many (?:output|completion|generated) tokens
    max\w* (?:number of )?(?:output|completion|generated) tokens[^.]{{0,40}}? (?:is|are|=|:) ?\d
    (?:超过|超出|大于)[^,。，]{{0,12}}(?:最大)?(?:输出|生成)(?:长度|token)
    (?:exceed|over|greater)\w* .{{0,40}}(?:maximum|max|limit) .{{0,20}}(?:output|completion) tokens
""")
# A parameter that the server does not know, whatever it is called.
NOT_A_CAP = any_of(r"""
    (?:unsupported|unrecognized|unknown|unexpected|extra) .{0,20}(?:parameter|argument|field|input|key)
    not supported with|not permitted|must be greater than|不支持
""")
# Input and answer together: only the numbers can tell which of the two is at fault.
SUM = any_of(r"""
    \+ ?(?:max_|the max|output|completion|new)
    (?:inputs?|prompt|message)\b.{0,40}(?:and|plus|\+) (?:\w+ )?(?:max|output|new).{0,25}(?:exceed|must)
    sum of|total of|in total|combined|together|max_tokens must be at least 1, got -
    (?:输入|输入token|提示).{0,12}(?:与|和|加|\+).{0,12}(?:输出|max_|生成)
""")

# A window of time: what is counted in it is no property of the model.
PERIOD = any_of(r"""
    \bper[ _-](?:second|sec|minute|min|hour|day|month)
    / ?(?:s|sec|second|min|minute|h|hour|d|day|month)\b
    per_minute|per_day|perminute|perday|\b[ioi]?[tr]p[msdh]\b|\bqp[sm]\b|\btps\b|a minute|daily
    hourly
    每分|每秒|每天|每日|每小时|分钟内|秒内|/分|今日|毎分|毎秒|1 ?分(?:間|あたり)|1日|분당|초당
    시간당|일일
    в минуту|в секунду|в час|в день|в сутки|por (?:minuto|segundo|hora|dia)
    par (?:minute|seconde|heure|jour)
    pro (?:minute|sekunde|stunde|tag)
""")
RATE = any_of(r"""
    rate[ _-]?limit|throttl|too many (?:concurrent |parallel |api )?(?:requests|calls)|slow down
    too many tokens, please wait|too many tokens per|rate increased too quickly|request limit
    (?:requests?|calls?) too (?:often|frequent)|concurren\w+ .{0,40}(?:limit|exceed|reach)
    quota exceeded for|resource[ _](?:has been )?exhausted|limit for this period|rate of requests
    (?:maximum|max) (?:number of )?(?:concurrent|parallel)
    (?:qps|rpm|tpm|tpd|rpd) .{0,20}(?:limit|reach)
    (?:rate|frequency|speed) (?:is )?(?:exceeded|too high|limited)|tier capacity exceeded|burst
    频率|頻率|频繁|頻繁|速率|限流
    (?:请求|請求|访问|調用|调用)(?:次数|量)?(?:数)?(?:过多|過多|过快|过高|超限)|并发
    限速|流控|リクエストが多|レート(?:制限|リミット)|流量制限|頻度|요청이 (?:너무 )?많|속도 제한
    요청 (?:한도|제한|빈도)
    слишком (?:много|част\w+) .{0,5}запрос|(?:лимит|частот|количеств)\w* .{0,10}запросов
    част\w+ запрос
    demasiadas (?:solicitudes|peticiones)
    limite de (?:solicitudes|velocidad|frecuencia|tasa|peticiones)
    muitas (?:solicitacoes|requisicoes)|limite de (?:taxa|requisicoes|solicitacoes)
    trop de (?:requetes|demandes)
    limite de (?:debit|requetes|frequence)|zu viele anfragen
    (?:raten|anfrage)\w*(?:limit|begrenzung)
""")
# The one request is larger than what the period allows at all.
REQUEST_TOO_LARGE = any_of(r"""
    request too large for
    tokens per min\w* \([a-z]*tpm\): limit.{0,80}must be reduced
    (?:single|one|this) request .{0,60}(?:larg|great|mo|bigg)er? than .{0,60}per[ -]?min
""")

QUOTA = any_of(r"""
    free (?:\w+ )?quota exceeded|plan and billing|overdue|past due|arrear|good standing
    credit balance|account balance
    insufficient[ _]?(?:account |user |token )?(?:balance|quota|credit|fund)
    balance .{0,20}(?:insufficient|too low|not enough|exhausted|depleted)
    not enough (?:credit|balance|fund|money)
    (?:out of|purchase|buy|used all available|need more|requires more|top up) (?:more |your )?credits?
    no (?:more )?credits? (?:left|remain|avail)
    credits? (?:limit|exhausted|depleted|required|have been|are)|credit limit|(?:un|pre)paid
    billing (?:hard |account |has |is )?(?:limit|not|to be|disabled|been|inactive|address)
    requires billing|billing_(?:hard_limit|not_active|disabled)|enable billing
    payment (?:method|required|failed|is required)|invoice|spend(?:ing)? (?:limit|cap)
    budget has been
    (?:exceed|over)\w* .{0,20}budget|max budget|monthly (?:usage|quota|budget|limit|spend|token)
    free (?:tier|trial|quota|allocation|credits?|plan).{0,50}(?:exhaust|used up|exceed|expired|ended)
    (?:exhaust|used up|use up|r[au]n out of|deplet)\w* .{0,40}(?:quota|credit|free|balance|alloc|funds)
    (?:quota|credit|free|balance|allocation|funds|allowance).{0,40}(?:exhaust|used up|deplet|run out)
    usage limits?\b|account .{0,40}suspended|recharge
    subscription .{0,20}(?:expired|inactive|required)
    余额|餘額|欠费|欠費|充值|儲值|账单|帳單|停服|付费
    (?:额度|額度|资源包?|資源包?|配额|配額|套餐|点数|流量包).{0,6}(?:用完|用尽|用盡|耗尽|耗盡|不足|已超)
    購買|购买|续费
    残高|クレジット.{0,6}(?:不足|使い)|支払|請求|課金|利用枠|잔액|크레딧|결제|요금|충전
    недостаточно (?:средств|денег|баланс)|баланс|оплат|задолжен|пополн
    (?:исчерпан|закончил)\w* .{0,20}(?:квот|средств|пакет)
    saldo|creditos? (?:insuf|agotad|esgotad)|facturacion|faturamento|\bpago\b|pagamento
    \bsolde\b|credit .{0,12}(?:insuffisant|epuise)|facturation|paiement|guthaben|abrechnung|zahlung
    kontingent .{0,20}(?:erschopft|aufgebraucht)
""")
# A period's quota in the words for a lack of money: DashScope's documentation gives throttling as
# the cause, and Google names the metric.
QUOTA_OF_A_PERIOD = any_of(r"""
    throttling\.|(?<!free )allocated quota exceeded|aliyun|alibabacloud
    quota exceeded for (?:quota )?metric
    rate limit exceeded|per[ _]minute
""")

CONTENT_FILTER = any_of(r"""
    content[ _-](?:management|filter|policy|moderation|safety)|content exists risk|inappropriate
    data may contain
    (?:sensitive|unsafe|harmful|prohibited|illegal|offensive|toxic) (?:content|text|info|word|topic)
    new_sensitive|flagged|moderation|profan
    safety (?:system|setting|filter|reason|polic|guideline|check|concern|violation)|due to safety
    (?:blocked|rejected|refused|filtered) .{0,40}(?:safety|polic|filter|moderat|guardrail)
    usage polic|acceptable use|high risk|violat\w* .{0,60}(?:polic|guideline|terms|rules)
    safety_check|polic\w+ violation|guardrail|responsible ?ai
    敏感|违规|違規|违法|違法|不安全|安全审核|内容审核|内容安全|审核(?:未|不)|不当内容|涉黄|涉政
    风险内容
    不適切|コンテンツ.{0,4}(?:ポリシー|フィルタ)|ポリシー.{0,4}違反|有害|부적절|콘텐츠 (?:정책|필터)
    유해|정책.{0,8}위반
    недопустим\w+ (?:содерж|контент)|политик\w+ (?:содерж|контент|безопасн|использ)
    запрещенн?\w+ (?:содерж|контент)
    чувствительн\w+ (?:тем|содерж|контент)|наруша\w+ .{0,30}(?:правил|политик)
    фильтр\w* (?:содерж|контент)
    contenido (?:inapropiado|inadecuado|sensible|prohibido|danino)
    (?:politica|filtro|moderacion) de(?:l)? contenido
    conteudo (?:inadequado|improprio|sensivel|proibido)|(?:politica|filtro|moderacao) de conteudo
    contenu (?:inapproprie|sensible|interdit)|(?:politique|filtr\w+|moderation) d[eu] contenu
    (?:unangemessen|anstoßig|unzulassig|verboten)\w* inhalt|inhalts?(?:richtlinie|filter)
    richtlinien? verst
""")

_PICTURE = r"""
    image|picture|photo|video|audio|media|pdf|attachment|vision|mime
    multimodal (?:content|file|data|input)|file(?= (?:size|format|type|exceed|is too))
    图片|图像|圖片|圖像|视频|音频|文件|画像|動画|音声|이미지|동영상|изображени|картин|видео
    imagen|imagem|\bbild\b|\bbilder|grafik
"""
_PICTURE_FAULT = r"""
    exceed|too (?:large|big|many|small|long)|unsupported|invalid|over \d|(?:larg|bigg)er than
    more than
    not (?:be |appear |a )?(?:support|valid|to be|process|download|fetch|decode|meet|load|allowed)
    corrupt|dimension|could not|cannot|can't|can not|at most|may be provided|failed|limit|mismatch
    is only supported
    不支持|不支援|超过|超過|超出|过大|過大|无效|無效|失败|格式|错误|損|超え|大きすぎ|対応して|無効
    초과|지원|너무|유효|превы|слишком|не поддерж|недопустим|поврежд
    supera|excede|demasiado|no (?:es )?(?:compatible|valida|soporta)|muito|trop|depass
    pas (?:valide|pris)|zu groß|ungultig|nicht unterstutzt|uberschr
"""
_CANNOT_TAKE = r"""
    (?:unable to|could not|failed to|cannot) (?:process|download|fetch|read|load|decode|identify)
    unsupported|unknown|unrecogni[sz]ed|bad|illegal|invalid|corrupt\w*|not support(?:ed)?
    that support
    too many|at most \d+|maximum of \d+|max \d+|more than \d+
"""
MEDIA = any_of(rf"""
    (?:{either(_PICTURE)})(?:(?!token|message).){{0,70}}?(?:{either(_PICTURE_FAULT)})
    (?:{either(_CANNOT_TAKE)})(?: \w+){{0,3}} (?:{either(_PICTURE)})
    not a (?:multimodal|vision) model|mmproj
    (?:不支持|无法处理|下载).{{0,6}}(?:图片|图像|视频|音频|多模态|视觉)
""")

_KEY = r"(?:api|access|auth\w*|bearer|security|subscription|secret|session)"
_BAD = r"""
    incorrect|invalid|wrong|missing|expired|revoked|malformed|no|unknown|inactive|disabled
    not (?:valid|found|exist|provided)
"""
AUTH = any_of(rf"""
    \b(?:{either(_BAD)})(?: \w+)? (?:x-)?{_KEY}?[ _-]?(?:key|credential|authenticat|authoriz|bearer)
    {_KEY}[ _-]?(?:key|token)s?\b.{{0,50}}\b(?:{either(_BAD)}|must be set)
    \b(?:{either(_BAD)}) (?:api|access|auth) token
    unauthori[sz]ed|unauthenticated|authenticat\w+ (?:fail|error|required)|permission denied
    access denied|(?<!extra_)forbidden|not authorized|not? (?:have )?(?:access|permission)
    login fail
    organization has been disabled
    account .{{0,30}}(?:deactivated|disabled|deleted|banned|not active)
    location is not supported|(?:country|region|territory).{{0,40}}not (?:supported|available)
    credentials could not be|signature is correct|secretid
    \bmodel\b[^,;]{{0,80}}?(?:not exist|not found|decommission|deprecated|no longer|retired|unknown)
    \bmodel\b[^,;]{{0,80}}?(?:is not|isn't) (?:a valid|available|supported|served|deployed|recogni|open)
    \bmodel\b[^,;]{{0,80}}?not allowed|(?:unknown|invalid|no such|unsupported|unrecognized) model\b
    not found the model|model_not_found|not a valid model
    (?:密钥|密鑰|key|令牌|token|凭证|签名).{{0,6}}(?:无效|無效|错误|錯誤|不正确|过期|失效|不存在|为空)
    (?:无效|無效|错误|非法)的? ?.{{0,6}}(?:密钥|密鑰|key|令牌|凭证|token)|身份验证|身份認證|鉴权
    (?:认证|验证)失败|未授权|无权|無權|权限|權限|未开通|模型.{{0,12}}(?:不存在|未找到|已下线)
    (?:不存在|未找到|找不到).{{0,6}}模型
    キー.{{0,10}}(?:無効|正しく|不正|間違|期限)|認証|権限|モデル.{{0,24}}(?:見つかり|存在し)
    アクセスが拒否
    키.{{0,10}}(?:유효하지|잘못|올바르지|만료)|인증|권한|모델.{{0,24}}(?:찾을 수 없|존재하지)
    접근이 거부
    (?:неверн|недействител|некорректн|неправильн)\w* .{{0,14}}(?:api|ключ|токен)
    ключ.{{0,20}}(?:недейств|невер|истек)|авториз|аутентиф|доступ\w* .{{0,12}}(?:запрещ|отказ)
    нет (?:доступа|прав)|модель.{{0,40}}не (?:найден|существ)
    (?:clave|chave).{{0,30}}(?:no es valida|nao e valida|invalida|incorre[ct]ta|incorreta)
    n[oa]o? autorizado|autentica[cs]|acces[so]o? (?:denegado|negado|refuse)
    modelo.{{0,40}}n[oa]o? (?:existe|se enc|encontrad|foi enc)
    \bcle\b.{{0,30}}(?:pas valide|invalide|incorrecte|expire)|non autorise|authentification
    modele.{{0,40}}(?:introuvable|n'existe pas)
    schlussel.{{0,30}}(?:ungultig|falsch|abgelaufen)|ungultig\w* .{{0,12}}schlussel
    nicht autorisiert
    authentifizierung|zugriff verweigert|modell.{{0,40}}(?:nicht gefunden|existiert nicht)
""")

FORMAT = any_of(r"""
    tool_use|tool_result|tool_calls?|tool call|tool result|toolresult|tooluse|tool_choice
    tool choice|tool names
    \bfunction[ _]?(?:call|response|name)|reasoning|thinking|signature|prefill|schema|malformed
    deserializ
    non-empty|non-whitespace|at least one message|must not be empty|cannot be empty
    (?:is|are|was) empty
    \broles?\b|alternat|must (?:start|begin|end|alternate|be followed|match)|start with a user
    (?:first|last) message|(?:is|was) null|same role|must be from|turns? in a row|come first
    does(?: not|n't) support (?:\w+ ){0,3}(?:tool|function|system|assistant|stream|param|role)
    pattern|text is not set|param\w* (?:incorrect|invalid|wrong|error)|must (?:contain|include|not)
    must be (?:an? |of |in |within |between |one |set|greater|at least|valid|string|object|positive|non)
    expected .{0,30}(?:string|object|array|list|got|but)|extra inputs|extra_forbidden|field required
    input should be
    invalid (?:type|value|json|schema|request body|argument|format|field|messages|content|role)\b
    invalid '
    (?:unsupported|unrecognized|unknown|unexpected|missing|required)(?: \w+)? (?:param|argument|field)
    (?:unsupported|unrecognized|unknown|unexpected|missing|required|duplicate) (?:value|key|prop|item)
    (?:invalid|duplicate)(?: \w+)? (?:parameter|argument|field|property|item|message)
    not permitted|is required|not allowed|cannot be set|not valid|not of type|invalid request\b
    could not parse|failed to parse|pars(?:e|ing) error|validation error
    following item|chat template|--jinja|--enable-auto|must be specified|not specified
    should be a valid
    参数(?:有误|错误|非法|无效|异常|校验)|參數(?:有誤|錯誤|無效)|非法|格式(?:错误|有误|不正确)
    不能为空|不可为空|必须|缺少|请检查文档|角色
    パラメータ.{0,6}(?:無効|不正|誤)|形式が|必須|空に|매개변수|형식|필수|비어|параметр|формат
    обязател|пуст(?:ой|ым|ое)|роль
    parametro|formato|obligatori|obrigatori|\bvaci[oa]|vazi[oa]|parametre|obligatoire|\bvide\b
    ungultig\w* (?:parameter|wert|anfrage|format)|erforderlich|\bleer\b|\brolle
""")
# The order of messages, which some servers refuse with 500.
ORDER = any_of(r"""
    alternate roles?|roles? must alternate|unexpected role|last message role
    must be followed by tool
    must be a response to a prece|tool_use.{0,60}tool_result|must (?:start|begin|end) with a user
""")
TRANSIENT = any_of(r"""
    overload|unavailable|internal (?:server )?error|server error|timed? ?out|timeout|try again|retry
    busy|over capacity
    upstream|connection|bad gateway|high demand|temporar|unexpected error|繁忙|稍后|稍後|重试
    内部错误|超时|过载
    服务异常
    混み合|しばらく|再試行|内部エラー|タイムアウト|과부하|잠시|내부 오류|시간 초과|перегруж|недоступ
    позже|внутренн\w+ ошибк
    sobrecarg|no disponible|indisponivel|mas tarde|mais tarde|surcharg|plus tard|indisponible
    uberlast|nicht verfugbar|spater
""")
OVERLOADED = any_of(r"""
    overload|over capacity|high demand|server busy|过载|繁忙|과부하|перегруж|uberlast|surcharg
""")
