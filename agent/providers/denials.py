"""The words of refusals that are not about sizes: rates, money, rights, content, form, faults.

For `agent.providers.refusal_kind`; matched, and in the order of languages, as in
`agent.providers.vocabulary`.
"""

from __future__ import annotations

from agent.providers.languages import MORE
from agent.providers.patterns import any_of, either

# A window of time: what is counted in it is no property of the model.
PERIOD = any_of(
    r"""
    \bper[ _-](?:second|sec|minute|min|hour|day|month)
    / ?(?:s|sec|second|min|minute|h|hour|d|day|month)\b
    per_minute|per_day|perminute|perday|\b[ioi]?[tr]p[msdh]\b|\bqp[sm]\b|\btps\b|a minute|daily
    hourly
    每分|每秒|每天|每日|每小时|分钟内|秒内|/分|今日|毎分|毎秒|1 ?分(?:間|あたり)|1日|분당|초당
    시간당|일일
    в минуту|в секунду|в час|в день|в сутки|por (?:minuto|segundo|hora|dia)
    par (?:minute|seconde|heure|jour)
    (?:pro|je|in der) (?:minute|sekunde|stunde|tag)|minuten(?:kontingent|limit|grenze)
""",
    MORE.period,
)
RATE = any_of(
    r"""
    limit (?:was |is |has been )?reached.{0,40}(?:re)?try (?:again )?(?:in|after) \d
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
    demasiadas (?:solicitudes|peticiones|llamadas)
    limite de (?:\d+ )?(?:solicitudes|velocidad|frecuencia|tasa|peticiones|llamadas)
    muitas (?:solicitacoes|requisicoes|chamadas)
    limite de (?:\d+ )?(?:taxa|requisicoes|solicitacoes)
    trop d(?:e requetes|e demandes|'appels)
    limite de (?:\d+ )?(?:debit|requetes|frequence|appels)|zu viele (?:anfragen|aufrufe)
    (?:raten|anfrage)\w*(?:limit|begrenzung)
""",
    MORE.rate,
)
# The one request is larger than what the period allows at all.
REQUEST_TOO_LARGE = any_of(r"""
    request too large for|(?:single|one) request exceeds (?:the )?(?:tpm|tokens per min)
    tokens per min\w* \([a-z]*tpm\): limit.{0,80}must be reduced
    (?:single|one|this) request .{0,60}(?:larg|great|mo|bigg)er? than .{0,60}per[ -]?min
""")

# What is used up for a month is no rate: waiting for a minute never helps.
_MONTH = r"""
    month|billing (?:cycle|period)|monat|mensua|mensal|mensuel|mensile|\bmes\b|\bmois\b|\bmese\b|месяц
    本月|每月|月度|今月|月間|月額|毎月|월간|이번 달|maand|miesi
"""
_CAP = r"""
    \blimit|\bcap\b|budget|quota|allowance|\btokens\b|limite|cuota|presupuesto|orcamento|kontingent
    лимит|额度|限额|上限|使用量|한도|limiet
"""
# What a key may spend is used up; what it may ask in a minute is not meant.
_OF_A_RATE = r".{0,80}(?:request|retry|try again|second|minute|hour)"
_KEY_SPENT = r"""
    (?:usage |spend\w* )?limit (?:has been |was |is )?(?:exceed|reach|hit)
    (?:has )?(?:exceeded|reached|hit|used up) (?:its|the|your) (?:total |spend\w* |credit |usage )?limit
"""
QUOTA = any_of(
    rf"""
    \bkey (?:{either(_KEY_SPENT)})(?!{_OF_A_RATE})
    (?:{either(_MONTH)}).{{0,40}}(?:{either(_CAP)})|(?:{either(_CAP)}).{{0,40}}(?:{either(_MONTH)})
    hard (?:\w+ )?(?:limit|cap)\b|(?:limited to|limit of) \d.{{0,30}}(?:/|\bper\b|\ba\b) ?month
"""
    r"""
    non-?payment|\bunpaid\b
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
    trial (?:period )?(?:has |is )?(?:ended|expired|over)\b
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
    (?:kontingent|budget) .{0,50}(?:erschopft|ausgeschopft|aufgebraucht|uberschritten)
    (?:agotad|superad|excedid|esgotad|epuis)\w* .{0,20}(?:presupuesto|orcamento|cuota|cota|quota|budget)
    (?:budget|presupuesto|orcamento) .{0,30}(?:depass|epuis|superad|agotad|excedid|esgotad|esaurit)
""",
    MORE.quota,
)
NO_SERVER_WITH_TOOLS = any_of(r"""
    no endpoints found that support tool
""")
"""OpenRouter's 404: the model is there, but nobody serves it with tools."""

# A period's quota in the words for a lack of money: DashScope's documentation gives throttling as
# the cause, Google names the metric, or says no more than that a resource is exhausted.
QUOTA_OF_A_PERIOD = any_of(r"""
    throttling\.|(?<!free )allocated quota exceeded|aliyun|alibabacloud
    quota exceeded for (?:quota )?metric
    rate limit exceeded|per[ _]minute|\bhourly|resource has been exhausted \(e\.g\. check quota
""")

CONTENT_FILTER = any_of(
    r"""
    content[ _-](?:management|filter|policy|moderation|safety)|content exists risk|inappropriate
    data may contain
    (?:sensitive|unsafe|harmful|prohibited|illegal|offensive|toxic)[ _](?:content|text|info|word|topic)
    new_sensitive|flagged|moderation|profan
    safety (?:system|setting|filter|reason|polic|guideline|check|concern|violation)|due to safety
    (?:blocked|rejected|refused|filtered) .{0,40}(?:safety|polic|filter|moderat|guardrail)
    (?:blocked|rejected|refused|filtered) because of (?:its|the|your) content
    usage polic|acceptable use|high risk|violat\w* .{0,60}(?:polic|guideline|terms|rules)
    safety_check|polic\w+ violation|guardrail|responsible ?ai
    敏感|违规|違規|违法|違法|不安全|安全审核|内容审核|内容安全|审核(?:未|不)|不当内容|涉黄|涉政
    风险内容
    不適切|コンテンツ.{0,4}(?:ポリシー|フィルタ)|ポリシー.{0,4}違反|有害|부적절|콘텐츠 (?:정책|필터)
    유해|정책.{0,8}위반
    недопустим\w+ (?:содерж|контент)|политик\w+ (?:содерж|контент|безопасн|использ)
    запрещенн?\w+ (?:содерж|контент)
    (?:отклон|заблокир)\w+ .{0,20}модераци|модераци\w+ .{0,20}(?:отклон|заблокир)
    чувствительн\w+ (?:тем|содерж|контент)|наруша\w+ .{0,30}(?:правил|политик)
    фильтр\w* (?:содерж|контент)
    contenido (?:inapropiado|inadecuado|sensible|prohibido|danino)
    (?:politica|filtro|moderacion) de(?:l)? contenido
    conteudo (?:inadequado|improprio|sensivel|proibido)|(?:politica|filtro|moderacao) de conteudo
    contenu (?:inapproprie|sensible|interdit)|(?:politique|filtr\w+|moderation) d[eu] contenu
    (?:unangemessen|anstoßig|unzulassig|verboten|schadlich)\w* (?:\w+ ){0,2}inhalt
    inhalts?(?:richtlinie|filter)|(?:richtlinie|regel|bedingung)\w* .{0,20}verst
    \bverst(?:oßt|ieß|oßen) gegen
    nutzungsrichtlinie|(?:incumple|infringe) .{0,30}(?:politica|norma|regla|termino)
    (?:enfrein|contrevi|viole)\w* .{0,30}(?:regle|politique|condition|charte)
    (?:viola|infringe)\w* .{0,30}(?:politica|diretriz|termos|regras)
    sicherheits(?:filter|richtlinie|grund)
    (?:motivos?|raisons?|motivi) d\w+ (?:seguri|seguran|securit|sicur)
    фильтр\w* безопасн|соображени\w+ безопасн|filtr\w+ d\w+ (?:segur|sicur|securit)
    (?:bloque|rechaz|rejet|recus)\w* .{0,40}(?:seguri|seguran|securit)
    (?:blocca|rifiut|blockier|abgelehnt)\w* .{0,40}(?:sicur|sicherheit)
""",
    MORE.content_filter,
)

_PICTURE = r"""
    image|picture|photo|video|audio|media|pdf|attachment|vision|mime
    multimodal (?:content|file|data|input)|file(?= (?:size|format|type|exceed|is too))
    图片|图像|圖片|圖像|视频|音频|文件|画像|動画|音声|이미지|동영상|изображени|картин|видео
    imagen|imagem|imagens|adjunto|anexo|archivo|arquivo|fichier|piece jointe|\bbild(?!en|ung|et)
    grafik
    \bdatei|anhang|\bfotos?\b
"""
_PICTURE_FAULT = r"""
    exceed|too (?:large|big|many|small|long)|unsupported|invalid|over \d|(?:larg|bigg)er than|großer als
    more than
    not (?:be |appear |a )?(?:support|valid|to be|process|download|fetch|decode|meet|load|allowed)
    not (?:represent|enabled)
    corrupt|dimension|could not|cannot|can't|can not|at most|may be provided|failed|limit|mismatch
    is only supported|kein\w* gultig|pas une? (?:image|fichier|photo)|no es una? (?:imagen|archivo)
    不支持|不支援|超过|超過|超出|过大|過大|无效|無效|失败|格式|错误|損|超え|大きすぎ|対応して|無効
    초과|지원|너무|유효|превы|слишком|не поддерж|недопустим|поврежд
    supera|excede|demasiado|no (?:es )?(?:compatible|valida|soporta)|muito|trop|depass
    danad|corrupt|no se pued|danificad|nao (?:pode|suportad)|pas (?:valide|pris|pu)|illisible
    corrompu|endommag
    zu groß|ungultig|nicht (?:unterstutzt|akzept|gelesen|verarbeitet|lesbar)|beschadigt|uberschr
"""
_CANNOT_TAKE = r"""
    (?:unable to|could ?n[o']t|failed to|can ?n[o']t|can't) (?:process|download|fetch|read|load|decode)
    can ?n[o']t (?:see|view|look at)
    (?:cannot|could not) identify
    unsupported|unknown|unrecogni[sz]ed|bad|illegal|invalid|corrupt\w*
    not (?:support(?:ed)?|accept|take|handle|understand)
    nicht unterstutzt\w*|ungultig\w*|beschadigt\w*|неподдержива\w+|поврежден\w+
    that support
    too many|at most \d+|maximum of \d+|max \d+|more than \d+
    (?:hochstens|maximal|maximo|maximum|au plus|al massimo) \d+
"""
_FAULT = either(_PICTURE_FAULT, MORE.picture_fault)
MEDIA = any_of(rf"""
    (?:{either(_PICTURE, MORE.picture)})(?:(?!token|message).){{0,70}}?(?:{_FAULT})
    (?:{either(_CANNOT_TAKE)})(?: \w+){{0,3}} (?:{either(_PICTURE)})
    not a (?:multimodal|vision) model|mmproj
    only (?:\w+,? ){{1,5}}(?:images?|pictures?|files?) (?:is|are) (?:supported|accepted|allowed)
    (?:不支持|无法处理|下载).{{0,6}}(?:图片|图像|视频|音频|多模态|视觉)
""")

_KEY = r"(?:api|access|auth\w*|bearer|security|subscription|secret|session)"
_BAD = r"""
    incorrect|invalid|wrong|missing|expired|revoked|malformed|no|unknown|inactive|disabled
    not (?:valid|found|exist|provided)
"""
_OURS = (
    r"(?:your|this|the) (?:\w+ )?(?:workspace|organi[sz]ation|account|project|team|plan|subscription"
    r"|tier|tenant|api key|region|country|location)"
)
AUTH = any_of(
    rf"""
    \b(?:{either(_BAD)})(?: \w+)? (?:x-)?{_KEY}?[ _-]?(?:key|credential|authenticat|authoriz|bearer)
    {_KEY}[ _-]?(?:key|token)s?\b.{{0,50}}\b(?:{either(_BAD)}|must be set)
    \b(?:{either(_BAD)}) (?:api|access|auth) token
    unauthori[sz]ed|unauthenticated|authenticat\w+ (?:fail|error|required)|permission denied
    access denied|(?<!extra_)forbidden|not authorized|not? (?:have )?(?:access|permission)
    login fail|\btoken (?:has |is )?expired|expired token
    organization has been disabled
    account .{{0,30}}(?:deactivated|disabled|deleted|banned|not active)
    location is not supported|(?:country|region|territory).{{0,40}}not (?:supported|available)
    credentials could not be|signature is correct|secretid
    \bmodel\b[^,;]{{0,80}}?(?:not exist|not found|decommission|deprecated|no longer|retired|unknown)
    \bmodel\b[^,;]{{0,80}}?(?:is not|isn't) (?:a valid|available|supported|served|deployed|recogni|open)
    not (?:allowed|available|enabled|permitted|accessible|activated) (?:for|in|on|to|by|within) {_OURS}
    {_OURS} (?:is |are )?not (?:allowed|enabled|permitted|entitled|eligible) (?:to|for)\b
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
    (?:clave|chave).{{0,30}}(?:n[oa]o? e?s? ?valida|invalida|incorre[ct]ta|caducad|expirad|vencid)
    n[oa]o? autorizado|autentica[cs]|acces[so]o? (?:denegado|negado|refuse)
    modelo.{{0,40}}n[oa]o? (?:existe|se enc|encontrad|foi enc)
    \bcle\b.{{0,30}}(?:pas valide|invalide|incorrecte|expire)|non autorise|authentification
    modele.{{0,40}}(?:introuvable|n'existe pas)
    schlussel.{{0,30}}(?:ungultig|falsch|abgelaufen)|ungultig\w* .{{0,12}}schlussel
    \btoken\b.{{0,24}}(?:invalid[oe]|expirad|\bexpire\b|caducad|scadut|vencid|ungultig|abgelaufen)
    nicht autorisiert
    authentifizierung|zugriff .{{0,40}}(?:verweigert|nicht (?:erlaubt|gestattet))
    modell.{{0,40}}(?:nicht gefunden|existiert nicht)
""",
    MORE.auth,
)

FORMAT = any_of(
    r"""
    tool_use|tool_result|tool_calls?|tool call|tool result|toolresult|tooluse|tool_choice
    tool choice|tool names
    \bfunction[ _]?(?:call|response|name)|reasoning|thinking|signature|prefill|schema|malformed
    deserializ
    (?:system|tool|assistant|function) (?:messages?|roles?|calls?) (?:is|are) not supported
    non-empty|non-whitespace|trailing whitespace|at least one message|must not be empty|cannot be empty
    (?:is|are|was) empty
    \broles?\b|alternat|must (?:start|begin|end|alternate|be followed|match)|start with a user
    (?:first|last) message|(?:is|was) null|same role|must be from|turns? in a row|come first
    does(?: not|n't) support (?:\w+ ){0,3}(?:tool|function|system|assistant|stream|param|role)
    pattern|text is not set|param\w* (?:incorrect|invalid|wrong|error)|must (?:contain|include|have|not)
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
    stop[ _]sequences? .{0,20}too (?:long|many)
    following item|chat template|--jinja|--enable-auto|must be specified|not specified
    should be a valid
    参数(?:有误|错误|非法|无效|异常|校验)|參數(?:有誤|錯誤|無效)|非法|格式(?:错误|有误|不正确)
    不能为空|不可为空|必须|缺少|请检查文档|角色
    パラメータ.{0,6}(?:無効|不正|誤)|形式が|必須|空に|매개변수|형식|필수|비어|параметр|формат
    обязател|пуст(?:ой|ым|ое)|роль
    parametro|formato|obligatori|obrigatori|\bvaci[oa]|vazi[oa]|parametre|obligatoire|\bvide\b
    ungultig\w* (?:parameter|wert|anfrage|format)|erforderlich|\bleer\b|\brolle|\bfehl(?:t|en)\b
    manquant
    \brol\b|\bdeben? (?:ser|alternar|tener)\b|\bdevem? (?:ser|alternar|ter)\b
    \bdoi(?:t|vent) (?:etre|alterner|avoir)\b|\bmuss(?:en)? .{0,40}(?:sein|abwechseln|haben|beginnen)
""",
    MORE.format,
)
# The order of messages, which some servers refuse with 500.
ORDER = any_of(r"""
    alternate roles?|roles? must alternate|unexpected role|last message role
    must be followed by tool
    must be a response to a prece|tool_use.{0,60}tool_result|must (?:start|begin|end) with a user
""")
TRANSIENT = any_of(
    r"""
    overload|unavailable|internal (?:server )?error|server error|timed? ?out|timeout|try again|retry
    busy|over capacity|访问量过|still loading
    upstream|connection|bad gateway|high demand|temporar|unexpected error|繁忙|稍后|稍後|重试
    内部错误|超时|过载
    服务异常
    混み合|しばらく|再試行|内部エラー|タイムアウト|과부하|잠시|내부 오류|시간 초과|перегруж|недоступ
    позже|внутренн\w+ ошибк
    sobrecarg|no disponible|indisponivel|mas tarde|mais tarde|surcharg|plus tard|indisponible
    uberlast|nicht (?:verfugbar|erreichbar)|spater|zeituberschreitung|interner fehler|erneut
    noch einmal|vorubergehend|momentan
    intentelo|tente (?:de )?novamente|reessay|попробуйте|повторите
""",
    MORE.transient,
)
OVERLOADED = any_of(r"""
    overload|over capacity|high demand|server busy|过载|繁忙|访问量过|과부하|перегруж|uberlast|surcharg
""")
