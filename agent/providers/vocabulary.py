"""The words for sizes: an input, an answer, a window, and that something is too long.

For `agent.providers.refusal_kind` and `agent.providers.refusal_numbers`. All are matched against
`refusal_text.uniform` text. Languages in this order: English, Chinese, Japanese, Korean, Russian,
Spanish, Portuguese, French, German; more are in `agent.providers.languages`.
"""

from __future__ import annotations

from agent.providers.languages import MORE
from agent.providers.patterns import any_of, either

# What was sent.
_INPUT = r"""
    \binputs?(?:\b|_)|prompt|\bmessages?\b|conversation|\brequest|\bcontext|history|payload|\btext\b
    \bsequence\b|\bchat\b(?!(?:[ _]?completion| template|\.))
    输入|輸入|提示|请求|請求|消息|訊息|内容|對話|对话|文本
    入力|プロンプト|メッセージ|リクエスト|会話
    입력|프롬프트|메시지|요청|대화
    запрос|ввод|вход|промпт|сообщени|текст|диалог
    entrada|mensaje|solicitud|peticion|conversacion|mensage[nm]|solicitacao|requisicao|conversa
    historial|historico|historique|\bentree|\binvite\b|requete|eingabe|anfrage|nachricht
    unterhaltung
    gesprach|konversation|verlauf|\btexto\b|\btexte\b
"""
# How much a model takes.
_WINDOW = r"""
    context[ _-]?(?:length|window|size|limit|budget)|\bcontext of\b|max\w* context|max_model_len
    max_seq_len|n_ctx|\bsequence length
    max\w* (?:allowed )?(?:prompt|input|sequence|model|message|request) (?:length|size|tokens?)
    max\w* (?:number of|total) (?:input )?tokens|max\w* (?:allowed )?length
    token (?:limit|budget|capacity|maximum|window)|(?:input|prompt|length) (?:limit|capacity)
    model'?s? (?:\w+ )?(?:limit|max)|max\w* (?:of )?\d+ tokens|max\w* tokens
    limit of \d[\d,.]* ?(?:tokens|$)
    what (?:this|the|your) model (?:can|is able to) (?:hold|take|handle|accept|process|fit|read)
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
    must (?:be|have) .{0,20}(?:at most|under|within|<|no more)|not fit|up to
    only (?:supports?|accepts?|takes?)|too small
    support\w* (?:only|at most|a max)|no (?:more|longer) than|at most|not enough|ran out|run out
    out of (?:context|room|space)|shorten|truncat|shorter|limited to (?:\w+ )?\d|larger|bigger|reached
    \d > \d|<=
    reduce (?:the|your) (?:length|size|number|prompt|input|message)|cannot be processed|should be \[
    超过|超過|超出|超长|超長|过长|過長|太长|太長|过大|過大|大于|大於|过多|不能超|上限|最多|缩短|縮短
    超限
    超え|超過|上回|長すぎ|長くなりすぎ|大きすぎ|多すぎ|上限|オーバー|以下|短く|収まり|収まら
    초과|너무 (?:길|많|큽|크|긴)|넘|벗어|이하|보다 (?:많|길|큽)|줄여|줄이
    превы|слишком (?:длин|больш|много|велик)|больше|не более|сократ|уменьш|не помеща|исчерпан
    переполн
    supera|excede|sobrepasa|rebasa|alcanzad|atingid|demasiado|mayor que|\badmite|no cabe|reduzca
    acorte|reduza
    ultrapass|longo demais|muito long|maior que|acima d[eoa]|nao cabe|encurte|depass
    trop (?:long|grand|volumineu)|superieur|atteint|n'(?:en )?accepte|au maximum|reduis|raccourci
    uberschr|ubersteig|langer als|zu (?:lang|gross|groß|viele)|großer als|mehr als|hochstens
    maximal|erreicht
    pass(?:t|en) (?:\w+ ){0,2}nicht|kurzen
"""
# Said of an input, in so many words.
_TOO_LONG = r"""
    長すぎ|長くなりすぎ|너무 (?:길|깁|긴|큽|크|큰)|слишком (?:длин|больш|велик)
    demasiado (?:larg|exten|grand)|muito (?:long|grand)|(?:longo?|grande|extens[oa]) demais
    trop (?:long|grand|volumineu)|zu (?:lang|gro)
    n[ao]o? cabe|ne (?:rentre|tient) p(?:as|lus)|pass(?:t|en) nicht|не помеща|収まり|収まら|放不下
"""
# Lengths in characters, of a field or of the input: no tokens.
_CHARACTERS = r"""
    \bcharacters?\b|maxlength|字符|文字|글자|символ|\bzeichen\b|caracter[es]|caracteres
"""
CHARACTERS = any_of("string too long|string_too_long|array too long", _CHARACTERS, MORE.characters)
_FIELD = r"""
    (?:id|name|description|key)\b|\b(?:nom|nome|nombre|descripcion|descricao|descrizione)\b
    beschreibung|bezeichnung|名称|描述|名前|説明|이름|설명|название|описание
"""
FIELD_TOO_LONG = any_of(rf"""
    '(?!messages(?:\[\d+\]\.content|')|input)[^']*': (?:string|array) too long|string_too_long
    (?:{either(_FIELD)}).{{0,60}}(?:{either(_CHARACTERS, MORE.characters)})
""")
TOKEN = any_of("token|トークン|토큰|токен|jeton|令牌|词元", MORE.unit)

INPUT = any_of(_INPUT, MORE.input)
WINDOW = any_of(_WINDOW, MORE.window)
EXCEEDS = any_of(_EXCEEDS, MORE.exceeds)

# Said so that nothing else can be meant.
OVERFLOW = any_of(rf"""
    context[ _-]?(?:length|window|size|limit)[ _](?:was |is |has been )?exceed
    (?:prompt|input|conversation|message|context|text|query)s?(?: \w+)?(?: is| are)? too (?:long|large)
    (?:prompt|input|conversation|message|context) (?:is )?too big
    history .{{0,12}}too (?:long|large)|(?<!stop )\bsequences? (?:is |are |was )?too (?:long|large)
    request (?:is |was |body )?too (?:long|large)(?! for)|payload too large|entity too large
    exceed\w* .{{0,30}}context|out of context|context .{{0,20}}overflow|too many (?:input )?tokens
    prompt,? too long|prompt exceeds|input length|(?:input|prompt) token count|longer than the model
    (?:prompt|input)_?(?: ?is)?_?too_?long|token limit exceeded|tokens limit .{{0,30}}exceeded
    payload size exceeds|request (?:size )?exceeds the max
    exceeds the maximum (?:allowed )?(?:size|length)
    max_(?:\w+_)?tokens must be at least 1, got -|less than or equal to '?-\d
    input tokens and requested \d+ output tokens|total length of (?:the )?(?:messages|input|prompt)
    '(?:input|(?:messages|input)\[\d+\]\.content[^']{{0,24}})': string too long
    'messages': array too long
    zu viele token|demasiados tokens|trop de (?:jetons|tokens)|muitos tokens|tokens demais
    слишком много токенов
    トークン.{{0,6}}多すぎ|토큰.{{0,6}}너무 많|token ?(?:数|數)?(?:过多|過多|太多)
    (?:{either(_INPUT)}).{{0,40}}?(?:not|n't|no longer|cannot|can ?not) (?:\w+ )?fit\w*\b
    (?:context|conversation|kv[ _-]?cache)(?: \w+){{0,3}}? (?:full|exhausted|used up|overrun)\b
    kontext.{{0,40}} (?:voll|erschopft)\b|context[oe].{{0,40}} (?:lleno|cheio|plein|esgotado|agotado)\b
    контекст.{{0,40}} (?:заполнен|исчерпан)|上下文.{{0,12}}(?:已满|用尽|用完|耗尽)
    (?:shorten|trim) (?:the|your|this) (?:prompt|input|messages?|conversation|context|history)\b
    expected maxlength: \d
    model_context_window_exceeded|reduce the length of (?:the|your) (?:message|prompt|input)
    too large to process|(?:maximum|max) (?:prompt|input) length
    (?:提示|输入|輸入|请求|prompt|内容|文本|消息|对话|记录|上下文|token).{{0,12}}(?:超长|超長|过长|過長|太长|太長)
    (?:输入|輸入|提示|上下文).{{0,4}}(?:长度|長度).{{0,6}}(?:超过|超過|超出|超限|大于)
    (?:{either(_INPUT, MORE.input)}).{{0,30}}?(?:{either(_TOO_LONG, MORE.too_long)})
""")

_OUTPUT = r"""
    max_(?:completion_|new_|output_)?tokens(?:_to_sample)?
    max[ _]?(?:completion|new|output|response)[ _]?tokens|maxoutputtokens|maxtokens|max_gen_len
    num_predict|n_predict|\bmax tokens\b
    (?:output|completion|response|generated?|generation)[ _](?:tokens?|length|limit)
    maximum tokens you requested|number of (?:new|output|generated) tokens
    最大?(?:输出|輸出|生成)(?:长度|長度| ?token)?|(?:输出|輸出|生成)(?:长度|長度| ?token)|最大回复
    出力トークン|最大出力|生成トークン|출력 토큰|최대 출력|생성 토큰|выходн\w+ токен|токен\w* ответа
    tokens? de (?:salida|saida|sortie)|ausgabe-?token|jetons de sortie|(?:ausgabe|antwort)lange
    (?:longitud|longueur|lunghezza) (?:de|della?) (?:la )?(?:respuesta|reponse|risposta)
    comprimento da resposta
    длин\w* ответа|回答の?長|응답 길이
"""
_TOO_MUCH = r"""
    too (?:large|high|big|many)|exceed|(?<!must be )greater than|larger than|above|higher than
    over (?:the|this|its|your|our|\d)
    (?:must|should|can|may)(?:not| not)? be (?:less|at most|<|no more|lower|smaller|between|in|within)
    (?:must|should|can|may)(?:not| not)? be (?:under|larger|greater than (?:the|\d))
    expected (?:a |an )?(?:value|number|integer) ?<
    less than or equal|at most|range|between \d|out of range|supports? (?:only|at most|up to)
    only supports|up to \d|maximum (?:value|allowed|is|of)|lower than \d|limited to|limit (?:is|of)
    超过|超過|超出|大于|大於|范围|範圍|最大(?:值|为|為|是)|上限|不能超|过大|過大|不得|应在|應在|之间|小于|以内
    超え|超過|上限|範囲|大きすぎ|以下|초과|범위|너무 (?:큽|크|많)|이하|미만|превы|диапазон|больше
    слишком|не более|меньше
    supera|excede|rango|intervalo|ma[iy]or|menor|depass|superieur|inferieur|uberschr|ubersteig
    bereich
    hochstens
    zu (?:groß|hoch)
"""
OUTPUT = any_of(_OUTPUT)
# The answer that was asked for, and that it is too much; or the value's range before its name.
OUTPUT_CAP = any_of(rf"""
    (?:{either(_OUTPUT)}).{{0,90}}?(?:{either(_TOO_MUCH, MORE.exceeds)})
    (?:invalid|illegal|range of|value (?:of|for)|valor de|wert fur) (?:parameter )?['"]?max_\w*tokens
    max\w* (?:ausgabe|antwort)lange (?:ist|von|betragt|:) ?\d
    (?:completion|output|response|answer) of \d+ (?:tokens )?(?:exceeds|is (?:over|above|more|larger))
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
    less than or equal to '?-\d
    (?:输入|输入token|提示).{0,12}(?:与|和|加|\+).{0,12}(?:输出|max_|生成)
""")
