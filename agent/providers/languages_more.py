"""More languages of Europe, and Urdu; see `agent.providers.languages`."""

from __future__ import annotations

from agent.providers.language import Language

FINNISH = Language(
    input=r"pyynto|pyynnon|viesti|syote|syott|keskustelu|kehote|kehotte|\bteksti|historia",
    window=r"konteksti|token(?:i|ien|eiden)?(?:raja|maara)|enimmais(?:pituu|maara)|suurin sallittu",
    exceeds=r"""
        ylitt|liian (?:pitk|suur|iso|mont|paljo)|enintaan|enimmais|(?:pitempi|pidempi) kuin|ei mahdu
        lyhenn
    """,
    too_long=r"liian (?:pitk|suur|iso)|ei mahdu",
    unit="token|merkkijonoyksik",
    characters="merkki[ae]|merkkeja",
    limit=r"enintaan|enimmais\w*|raja\w*|sallit\w+|ylitt\w+",
    used=r"sisaltaa|pyydet\w+|lahetet\w+",
    period=r"(?:minuutissa|sekunnissa|tunnissa|paivassa|vuorokaudessa)",
    rate=r"liian (?:monta|paljon) pyynto|liikaa pyynto|pyynto(?:jen)? (?:raja|maara)",
    quota=r"""
        \bsaldo|maksu|lasku(?:tus)?\b|tilaus .{0,16}(?:paatty|vanhen)
        kiintio .{0,24}(?:taynna|kaytetty)|krediit
    """,
    content_filter=r"""
        (?:rikkoo|vastai).{0,40}(?:kaytant|ehto|sadn|saant|ohjei)|sisalto(?:kaytant|suodat)
        sopimaton sisal
    """,
    picture=r"\bkuva|kuvan\b|tiedosto|liite\b",
    picture_fault=r"liian suur|ei tueta|virheelli|vioittu|ylitt",
    auth=r"""
        avain.{0,24}(?:virheelli|vanhentu|ei kelpaa)|(?:virheelli|vaara)\w* .{0,12}avain|kayttooikeu
        paasy evatty|tunnistautu|malli\w*.{0,30}ei (?:loydy|ole olemassa|kaytettavissa)
    """,
    format=r"pakollinen|puuttu|virheelli\w* (?:parametri|pyynto|muoto|arvo)|ei saa olla tyhja",
    transient=r"""
        yrita (?:uudelleen|myohemmin)|ylikuormit|ei (?:ole )?kaytettavissa|sisainen virhe|aikakatkai
    """,
    later=r"uudelleen|\bodota\b|kuluttua|paasta",
    seconds="sekun(?:ti|nin|tia|tin)",
    minutes="minuut(?:ti|in|tia)",
    hours="tun(?:ti|nin|tia)",
)

NORWEGIAN = Language(  # and Danish
    input=r"""
        foresporsel|foresporgsel|melding|besked|samtale|inndata|\binput
        \btekst(?:en)?\b|historikk
    """,
    window=r"kontekst|tokengrens|(?:maksimal|storste|hojeste)\w* (?:lengde|længde|antal)",
    exceeds=r"""
        overskrid|\bfor (?:lang|stor)(?:t|e)?\b|\bfor (?:mange|mye|meget)\b
        (?:lengre|længere|storre|flere) en[nd]\b
        hoyst|hojst|maks|passer ikke|forkort
    """,
    too_long=r"\bfor (?:lang|stor)t?e?\b|passer ikke",
    unit="token",
    characters="tegn",
    limit=r"maks\w*|grens\w*|græns\w*|hoyst|hojst|tillat\w*|tillad\w*",
    used=r"inneholder|indeholder|mottatt|modtaget|sendt|\bhar\b",
    period=r"(?:per|pr\.?|i) (?:minutt?|sekund|time|dag|dogn)(?:en|et)?\b|daglig",
    rate=r"for mange (?:foresporsler|foresporgsler|anmodninger|kall|kald)",
    quota=r"""
        \bsaldo|utilstrekkelig|utilstrækkelig|betaling|faktura|abonnement
        kvote\w* .{0,24}(?:brukt|brugt|oppbrukt|opbrugt)
    """,
    content_filter=r"""
        (?:bryter|strider|overtræder|i strid) .{0,40}(?:retningslinj|vilkar|regl|politik)
        (?:upassende|forbudt|skadelig) ind?h
    """,
    picture=r"\bbilde|\bbillede|\bfil(?:en)?\b|vedlegg|vedhæft",
    picture_fault=r"for stor|stottes ikke|understottes ikke|ugyldig|skadet|beskadiget|overskrid",
    auth=r"""
        (?:nokkel|nogle)\w*.{0,24}(?:ugyldig|feil|forkert|utlopt|udlobet)
        ugyldig\w* .{0,16}(?:nokkel|nogle)|ikke tilgang|ingen adgang|tilgang nektet|adgang nægtet
        autentiser|modell\w*.{0,30}(?:finnes ikke|findes ikke|ikke funnet)
    """,
    format=r"""
        pakrevd|pakrævet|obligatorisk|mangler|ugyldig\w* (?:parameter|foresporsel|format|verdi)
        kan ikke være tom
    """,
    transient=r"""
        prov igjen|prov igen|overbelast|utilgjengelig|ikke tilgjengelig|intern feil|intern fejl
        senere
    """,
    later=r"igjen|\bigen\b|\bvent\b|\bom\b",
    seconds="sekund(?:er)?",
    minutes="minut(?:t|ter|er)?",
    hours="time[r]?",
)

SLOVAK = Language(
    input=r"poziadav|\bsprav|konverzaci|rozhovor|\bvstup|\btext\b|histori",
    window=r"kontext|dlzk\w+ kontext|limit token|maximaln\w+ (?:dlzk|poc)",
    exceeds=r"""
        prekrac|prekroc|(?:prilis|privelm) (?:dlh|velk|vela)|(?:dlhsi|vacsi|viac) ako|najviac
        nezmesti|skrat
    """,
    too_long=r"(?:prilis|privelmi) (?:dlh|velk)|nezmesti",
    unit="token",
    characters="znak(?:ov|y)?",
    limit=r"maxim\w+|limit\w*|najviac|povolen\w+|okn\w+",
    used=r"obsahuje|\bma\b|prijat|odoslan",
    period=r"za (?:minutu|sekundu|hodinu|den)\b|denne",
    rate=r"prilis (?:vela|mnoho) (?:poziadav|volani)|limit (?:poziadav|rychlosti)",
    quota=r"zostat|nedostat\w+ (?:kredit|prostried)|kredit\w* .{0,16}vycerp|platb|faktur|predplat",
    content_filter=r"""
        porus.{0,40}(?:zasad|pravid|podmien)|(?:nevhodn|zakazan|skodliv|citliv)\w* obsah
    """,
    picture=r"obraz|\bsubor|priloh|fotk|fotograf",
    picture_fault=r"prilis velk|nepodporov|neplatn|poskoden|prekrac|nemozno",
    auth=r"""
        kluc.{0,24}(?:neplatn|nespravn|vyprsal)|(?:neplatn|nespravn)\w* kluc|neopravnen|overeni
        pristup (?:bol )?(?:odoprety|zamietnut)
        model\w*.{0,30}(?:neexistuje|nenajden|nie je dostupn)
    """,
    format=r"""
        povinn|chyba (?:pole|parameter)|neplatn\w* (?:parameter|poziadav|format|hodnot)
        nesmie byt prazdn
    """,
    transient=r"skuste|neskor|pretazen|nedostupn|vnutorna chyba|chyba servera",
    later=r"znova|pockajte|neskor|\bo\b",
    seconds="sekund[yu]?",
    minutes="minut[yu]?",
    hours="hodin[yu]?",
)

BULGARIAN = Language(
    input=r"заявка|съобщени|разговор|вход|подкана|текст|история",
    window=r"контекст|лимит\w* (?:на|за) токен|максималн\w+ (?:дължин|брой)",
    exceeds=r"""
        надвиш|надхвърл|твърде (?:дълг|дълъг|голям|много)|прекалено (?:дълг|дълъг|голям)|най-много
        по-(?:дълг|голям|дълъг)|съкрат
    """,
    too_long=r"(?:твърде|прекалено) (?:дълг|дълъг|голям)|не се побира",
    unit="токен",
    characters="знак|символ",
    limit=r"максим\w+|лимит\w*|най-много|позволен\w+|допустим\w+",
    used=r"съдържа|поискан\w*|изпратен\w*|получен\w*",
    period=r"(?:на|в|за) (?:минута|секунда|час|ден)\b|дневно",
    rate=r"твърде много заявки|лимит\w* (?:на|за) заявк",
    quota=r"""
        баланс|недостатъчн\w+ (?:средства|кредит)|плащане|фактур|абонамент|квот\w* .{0,24}изчерпан
    """,
    content_filter=r"""
        наруша.{0,40}(?:правил|политик|услови)|(?:неподходящ|забранен|вредн)\w* съдържание
    """,
    picture=r"изображени|снимк|файл|прикачен",
    picture_fault=r"твърде голям|не се поддържа|невалид|повреден|надвиш",
    auth=r"""
        ключ.{0,24}(?:невалид|грешен|изтекъл)|(?:невалид|грешен)\w* .{0,12}ключ|достъпът е отказан
        нямате (?:достъп|права)|удостоверяване|модел\w*.{0,30}не (?:съществува|е намерен|е наличен)
    """,
    format=r"задължителн|липсва|невалид\w* (?:параметър|заявка|формат|стойност)|не може да е празн",
    transient=r"опитайте|по-късно|претоварен|недостъпен|вътрешна грешка|грешка на сървъра",
    later=r"отново|изчакайте|след",
    seconds="секунд[аи]",
    minutes="минут[аи]",
    hours="часа?",
)

CROATIAN = Language(  # and Bosnian, and Serbian in both alphabets
    input=r"""
        upit|zahtjev|zahtev|poruk|razgovor|\bunos|\bulaz|\btekst\b|povijest|istorij|упит|захтев
        порук|разговор|унос
    """,
    window=r"""
        kontekst|ogranicenj\w+ tokena|(?:maksimaln|najvec)\w+ (?:duljin|duzin|broj)|контекст
        максималн\w+ (?:дужин|број)
    """,
    exceeds=r"""
        prekorac|premas|prelaz|pre(?:vise)? ?(?:dug|velik)|najvise|duz[ie] od|vec[ie] od|skratite
        прекорач|премаш|прелази|предуг|превелик|највише|скратите
    """,
    too_long=r"pre(?:vise)? ?(?:dug|velik)|ne stane|предуг|превелик",
    unit="token|токен",
    characters="znakov|znakova|карактер|знак",
    limit=r"maksim\w+|ogranic\w+|najvise|dozvol\w+|dopust\w+|највише|максим\w+|дозвољен\w*",
    used=r"sadrzi|\bima\b|poslan\w*|primljen\w*|садржи",
    period=r"(?:u|po|na) (?:minuti?|sekundi?|satu?|danu?)\b|dnevno",
    rate=r"""
        previse (?:zahtjeva|zahteva|upita|poziva)|ogranicenj\w+ (?:zahtjeva|zahteva|upita)
        превише (?:захтева|упита)
    """,
    quota=r"""
        \bsaldo|nedovoljno (?:sredstava|kredita)|placanj|racun\w* .{0,16}(?:dospio|neplacen)
        pretplat|kvota .{0,24}(?:iscrpljen|potrosen)|недовољно
    """,
    content_filter=r"""
        \bkrsi .{0,40}(?:pravil|politik|uvjet|uslov|smjernic)
        (?:neprimjeren|neprimeren|zabranjen|stetan)\w* sadrzaj
    """,
    picture=r"\bslik|datotek|\bfajl|prilog|fotograf",
    picture_fault=r"prevelik|nije podrzan|nevaljan|nevazec|ostecen|prekorac",
    auth=r"""
        kljuc.{0,24}(?:nevaljan|nevazec|neispravan|istekao)
        (?:nevaljan|nevazec|neispravan)\w* .{0,12}kljuc|nemate (?:pristup|ovlast|dozvol)
        pristup (?:je )?odbijen|autentifikacij
        model\w*.{0,30}(?:ne postoji|nije pronaden|nije dostupan)
    """,
    format=r"""
        obavezn|nedostaje|(?:nevaljan|neispravan)\w* (?:parametar|zahtjev|zahtev|format)
        ne smije biti prazn
    """,
    transient=r"""
        pokusajte|kasnije|preopterec|nedostupan|interna greska|greska posluzitelja|покушајте|касније
    """,
    later=r"ponovno|ponovo|pricekajte|sacekajte|\bza\b|поново",
    seconds="sekund[ieau]?",
    minutes="minut[aeu]?",
    hours="sat[ai]?",
)

CATALAN = Language(
    input=r"sol.?licitud|missatge|conversa|\bentrada|peticio|\btext\b|historial",
    window=r"finestra de context|limit de tokens|(?:longitud|nombre) maxim",
    exceeds=r"""
        supera|excedeix|sobrepassa|massa (?:llarg|gran|molts?)|mes (?:llarg|gran)a? que|com a maxim
        no (?:hi )?cap\b|escurc
    """,
    too_long=r"massa (?:llarg|gran)|no (?:hi )?cap\b",
    unit="token",
    characters="caracters",
    limit=r"maxim\w*|limit\w*|permes\w*|admet\w*",
    used=r"\bconte\b|rebut\w*|enviat\w*",
    period=r"per (?:minut|segon|hora|dia)\b|diari",
    rate=r"massa (?:sol.?licituds|peticions|crides)|limit de (?:sol.?licituds|peticions|velocitat)",
    quota=r"""
        \bsaldo?\b|credit\w* (?:insuficient|esgotat)|pagament|facturacio|subscripcio
        quota .{0,24}(?:esgotad|superad)
    """,
    content_filter=r"""
        (?:infringeix|viola|incompleix).{0,40}(?:norm|politic|condicion|termes)
        contingut (?:inadequat|prohibit|sensible)
    """,
    picture=r"imatge|fitxer|adjunt|\bfoto\b",
    picture_fault=r"massa gran|no (?:es )?(?:compatible|valid|admes)|malmes|supera",
    auth=r"""
        clau.{0,24}(?:no (?:es )?valida|incorrecta|caducada)|no autoritzat|acces denegat
        autenticacio|model\b.{0,30}no (?:existeix|s'ha trobat|disponible)
    """,
    format=r"""
        obligatori|falta (?:el|la) |parametre .{0,16}(?:no valid|incorrecte)
        no pot (?:ser|estar) buit
    """,
    transient=r"torneu?-ho|mes tard|sobrecarreg|no (?:esta )?disponible|error intern",
    later=r"torn\w+|espereu|d'aqui",
    seconds="segons?",
    minutes="minuts?",
    hours="hor(?:a|es)",
)

URDU = Language(
    input=r"درخواست|پیغام|گفتگو|ان ?پٹ|متن|پرامپٹ",
    window=r"سیاق|ٹوکن (?:کی )?حد|زیادہ سے زیادہ",
    exceeds=r"سے (?:زیادہ|بڑ|تجاوز)|تجاوز|بہت (?:طویل|لمب|بڑ)|زیادہ سے زیادہ|مختصر",
    too_long=r"بہت (?:طویل|لمب|بڑ)",
    unit="ٹوکن",
    characters="حروف",
    limit=r"زیادہ سے زیادہ|حد|اجازت",
    used=r"ہے|کل|بھیجے",
    period=r"فی (?:منٹ|سیکنڈ|گھنٹہ|دن)|روزانہ",
    rate=r"بہت (?:زیادہ )?درخواستیں|درخواستوں کی (?:حد|شرح)",
    quota=r"بیلنس|ناکافی (?:کریڈٹ|رقم)|ادائیگی|کوٹہ .{0,24}ختم",
    content_filter=r"(?:پالیسی|قواعد|شرائط).{0,30}خلاف|نامناسب مواد",
    picture=r"تصویر|فائل|ویڈیو",
    picture_fault=r"بہت بڑ|تعاون یافتہ نہیں|غلط|خراب",
    auth=r"""
        (?:کلید|key).{0,24}(?:غلط|غیر درست|ختم)|اجازت نہیں|رسائی (?:سے )?انکار|تصدیق
        ماڈل.{0,30}(?:موجود نہیں|نہیں ملا)
    """,
    format=r"لازمی|غائب|غلط (?:پیرامیٹر|فارمیٹ)|خالی نہیں",
    transient=r"دوبارہ کوشش|بعد میں|مصروف|دستیاب نہیں|اندرونی خرابی",
    later=r"بعد|دوبارہ|انتظار",
    seconds="سیکنڈ",
    minutes="منٹ",
    hours="گھنٹ\\S*",
)
