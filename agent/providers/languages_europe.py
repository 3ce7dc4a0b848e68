"""More languages of Europe; see `agent.providers.languages`."""

from __future__ import annotations

from agent.providers.language import Language

DUTCH = Language(
    input=r"verzoek|bericht|gesprek|invoer|\btekst\b|geschiedenis",
    window=r"contextvenster|contextlengte|tokenlimiet|maximale lengte|maximum aantal tokens",
    exceeds=r"""
        overschr(?:ijd|ed)|\bte (?:lang|groot|veel)\b|(?:langer|groter|meer) dan
        hoogstens|maximaal
        past niet|verkort|\binkort
    """,
    too_long=r"\bte (?:lang|groot)\b|past niet",
    unit="token",
    characters="tekens",
    limit=r"maxim\w+|limiet|hoogstens|toegestaan|venster",
    used=r"bevat|telt|ontvangen|verzonden|gevraagd",
    period=r"per (?:minuut|seconde|uur|dag)\b|dagelijks",
    rate=r"te veel (?:verzoeken|aanvragen|oproepen)|(?:verzoek|snelheids)limiet",
    quota=r"""
        \bsaldo\b|tegoed .{0,16}(?:op\b|ontoereikend|onvoldoende|verbruikt)|onvoldoende tegoed
        betaling|factuur|abonnement
        quotum .{0,24}(?:bereikt|op\b|overschreden|verbruikt)
    """,
    content_filter=r"""
        (?:schend|in strijd).{0,40}(?:beleid|voorwaarden|richtlijn|regels)|inhoudsbeleid
        (?:ongepaste|verboden|schadelijke|gevoelige) inhoud
    """,
    picture=r"afbeelding|bestand|bijlage|\bfoto\b",
    picture_fault=r"te groot|te klein|niet (?:ondersteund|geldig|leesbaar)|ongeldig|beschadigd",
    auth=r"""
        sleutel.{0,24}(?:ongeldig|niet geldig|onjuist|verlopen)|ongeldige .{0,16}sleutel
        niet (?:gemachtigd|bevoegd)|geen toegang|toegang geweigerd|verificatie
        model\b.{0,30}(?:niet gevonden|bestaat niet|niet beschikbaar)
    """,
    format=r"verplicht|ontbreekt|ongeldig\w* (?:parameter|verzoek|waarde|formaat)|mag niet leeg",
    transient=r"""
        overbelast|niet beschikbaar|later (?:opnieuw|nog)|probeer .{0,30}opnieuw
        interne fout
    """,
    later=r"opnieuw|\bwacht|\bover\b",
    seconds="seconden?",
    minutes="minu(?:ut|ten)",
    hours="uur",
)

POLISH = Language(
    input=r"zapytani|zadani|wiadomosc|rozmow|konwersacj|wejsci|\btekst\b|histori",
    window=r"""
        okn\w+ kontekst|dlugosc kontekst|kontekstu|limit token
        maksymaln\w+ (?:dlugosc|liczb)
    """,
    exceeds=r"""
        przekr|(?:za|zbyt) (?:dlug|duz|wiel)|(?:dluzsz|wieksz|wiecej|ponad) |najwyzej
        maksim|maksym
        nie miesci|skroc
    """,
    too_long=r"(?:za|zbyt) (?:dlug|duz)|nie miesci",
    unit="token",
    characters="znak",
    limit=r"maks\w+|limit\w*|najwyzej|dozwolon\w+|okn\w+",
    used=r"zawiera|liczy|otrzyman|wyslan|\bma\b",
    period=r"na (?:minute|sekunde|godzine|dzien|dobe)\b|dzienn",
    rate=r"""
        (?:za|zbyt) (?:duzo|wiele) (?:zadan|zapytan|wywolan)
        limit (?:zadan|zapytan|szybkosci)
    """,
    quota=r"""
        \bsrodk\w+|saldo|platnosc|faktur|dolad|subskrypcj|niewystarczajac\w+ (?:kredyt|saldo)
        (?:kredyt|limit srodkow|przydzial)\w* .{0,24}(?:wyczerp|skoncz)
    """,
    content_filter=r"""
        narusza.{0,40}(?:zasad|polityk|regulamin|warunk)|polityk\w+ (?:tresci|bezpieczenstwa)
        (?:niedozwolon|nieodpowiedni|szkodliw|wrazliw)\w* tresc
    """,
    picture=r"obraz|zdjeci|\bplik|zalacznik",
    picture_fault=r"za duz|zbyt duz|nieobslugiwan|nieprawidlow|uszkodzon|przekr|nie mozna",
    auth=r"""
        klucz.{0,24}(?:nieprawidlow|niepoprawn|niewazn|wygas)|(?:nieprawidlow|niepoprawn)\w* klucz
        brak (?:uprawnien|dostepu|autoryz)|odmowa dostepu|nieautoryzowan|uwierzytelni
        model\w*.{0,30}nie (?:istnieje|znalezion|jest dostepn)|nie znaleziono modelu
    """,
    format=r"wymagan|brakuj|nieprawidlow\w* (?:parametr|zadani|format|wartosc)|nie moze byc pust",
    transient=r"sprobuj|pozniej|przeciaz|niedostepn|wewnetrzny blad|blad (?:serwera|wewnetrzny)",
    later=r"ponownie|poczekaj|odczekaj|\bza\b",
    seconds="sekund[ye]?",
    minutes="minut[ye]?",
    hours="godzin[ye]?",
)

CZECH = Language(
    input=r"pozadav|\bzprav|konverzac|rozhovor|\bvstup|\btext\b|histori",
    window=r"kontextov|delk\w+ kontext|kontextu|limit token|maximaln\w+ (?:delk|poc)",
    exceeds=r"""
        prekr|(?:prilis|moc) (?:dlouh|velk|mnoh)|(?:delsi|vetsi|vice) nez|nejvyse|maxim|nevejde
        zkratte
    """,
    too_long=r"(?:prilis|moc) (?:dlouh|velk)|nevejde",
    unit="token",
    characters="znak[uy]?",
    limit=r"maxim\w+|limit\w*|nejvyse|povolen\w+|okn\w+",
    used=r"obsahuje|\bma\b|prijat|odeslan",
    period=r"za (?:minutu|sekundu|hodinu|den)\b|denni",
    rate=r"prilis mnoho (?:pozadavk|volani|dotaz)|limit (?:pozadavk|rychlosti|dotaz)",
    quota=r"""
        zustat|nedostat\w+ (?:kredit|prostred)|kredit\w* .{0,16}vycerp|platb|faktur
        predplat|dobijte
    """,
    content_filter=r"""
        porus.{0,40}(?:zasad|pravid|podmin)|(?:nevhodn|zakazan|skodliv|citliv)\w* obsah
    """,
    picture=r"obraz|\bsoubor|priloh|fotk|fotograf",
    picture_fault=r"prilis velk|nepodporov|neplatn|poskozen|prekr|nelze",
    auth=r"""
        klic.{0,24}(?:neplatn|nespravn|vyprsel)|(?:neplatn|nespravn)\w* klic|neopravnen|overeni
        pristup (?:byl )?(?:odepren|zamitnut)|nemate (?:opravneni|pristup)
        model\w*.{0,30}(?:neexistuje|nenalezen|neni dostupn)
    """,
    format=r"povinn|\bchybi|neplatn\w* (?:parametr|pozadav|format|hodnot)|nesmi byt prazdn",
    transient=r"zkuste|pozdeji|pretizen|nedostupn|interni chyba|vnitrni chyba",
    later=r"znovu|pockejte|\bza\b",
    seconds="sekund[ay]?",
    minutes="minut[ay]?",
    hours="hodin[ay]?",
)

UKRAINIAN = Language(
    input=r"запит|повідомлен|розмов|діалог|\bтекст|історі|введен",
    window=r"контекст|ліміт\w* токен|максимальн\w+ (?:довжин|кільк)",
    exceeds=r"""
        перевищ|(?:занадто|надто) (?:довг|велик|багато)|(?:довш|більш|більше) |не більше|максим
        не вміщ|скороти
    """,
    too_long=r"(?:занадто|надто) (?:довг|велик)|не вміщ",
    unit="токен",
    characters="символ",
    limit=r"максим\w+|ліміт\w*|не більше|дозволен\w+|контекст\w*",
    used=r"містить|отриман|надіслан|має",
    period=r"(?:на|за) (?:хвилину|секунду|годину|день|добу)",
    rate=r"(?:за|на|надто )багато запит|ліміт запит|частот\w+ запит",
    quota=r"""
        недостатньо (?:кошт|кредит|засоб)|рахун|поповн|оплат|підписк|баланс
        квот\w+ .{0,20}вичерп
    """,
    content_filter=r"""
        поруш.{0,40}(?:правил|політик|умов)
        (?:заборонен|шкідлив|неприйнятн)\w* (?:вміст|контент)
    """,
    picture=r"зображен|картинк|\bфайл|вкладен",
    picture_fault=r"завелик|занадто велик|не підтрим|недійсн|пошкоджен|перевищ",
    auth=r"""
        ключ.{0,24}(?:недійсн|невірн|неправильн|закінч)
        (?:недійсн|невірн|неправильн)\w* .{0,8}ключ
        немає (?:доступ|прав)|доступ заборонен|неавториз|автентиф
        модель.{0,30}не (?:знайден|існує|доступн)
    """,
    format=r"обов'язков|відсутн|не може бути порожн|неправильн\w* (?:формат|параметр|значен)",
    transient=r"спробуйте|пізніше|перевантаж|недоступн|внутрішн\w+ помилк",
    later=r"через|зачекай\w*|знову",
    seconds="секунд[иу]?",
    minutes="хвилин[иу]?",
    hours="годин[иу]?",
)

SWEDISH = Language(
    input=r"begaran|forfragan|meddeland|\bkonversation|samtal|\bindata|\btext(?:en)?\b|histori",
    window=r"kontext(?:fonst|langd)|tokengrans|maximal\w* (?:langd|antal)",
    exceeds=r"""
        overskr|\bfor (?:lang|stor)(?:t|a)?\b|\bfor (?:manga|mycket)\b|(?:langre|storre|fler|mer) an
        hogst|maxim|ryms inte|forkorta
    """,
    too_long=r"for (?:lang|stor)\w*\b|ryms inte",
    unit="token",
    characters="tecken|tegn",
    limit=r"maxim\w+|maks\w+|grans\w*|hogst|hoyst|tillat\w+",
    used=r"innehaller|inneholder|mottog|skickade|\bhar\b",
    period=r"per (?:minut|sekund|timme|dag|dygn)\b|dagligen",
    rate=r"""
        for manga (?:forfragningar|begaranden|anrop)
        for mange (?:foresporsler|anmodninger|kall)
    """,
    quota=r"""
        \bsaldo|otillracklig\w* (?:saldo|kredit|medel)|betalning|faktura
        kredit\w* .{0,16}slut
    """,
    content_filter=r"""
        (?:bryter|strider) mot .{0,40}(?:polic|riktlinj|villkor|regl)
        (?:olampli|forbjud|skadli|kansli)\w* innehall
    """,
    picture=r"\bbild(?:en|er)?\b|\bfil(?:en)?\b|bilaga",
    picture_fault=r"for stor|stods inte|ogiltig|skadad|overskr",
    auth=r"""
        nyckel.{0,24}(?:ogiltig|felaktig|har gatt ut)|(?:ogiltig|felaktig)\w* .{0,16}nyckel
        (?:obehorig|atkomst nekad)|saknar (?:behorighet|atkomst)|autentisering
        modell\w*.{0,30}(?:hittades inte|finns inte|inte tillganglig)
    """,
    format=r"obligatorisk|saknas|ogiltig\w* (?:parameter|begaran|format|varde)|far inte vara tom",
    transient=r"forsok igen|overbelasta|inte tillganglig|internt fel|forsok senare",
    later=r"igen|\bvanta\b|\bom\b",
    seconds="sekund(?:er)?",
    minutes="minut(?:er)?",
    hours="timm(?:e|ar)",
)

ROMANIAN = Language(
    input=r"cerere|solicitare|mesaj|conversati|intrare|\btext(?:ul)?\b|istoric",
    window=r"fereastr\w+ de context|limita de token|(?:lungime|numar)\w* maxim",
    exceeds=r"""
        depas|prea (?:lung|mare|mult|mari)|mai (?:lung|mare|mult)\w* (?:de|decat)|cel mult|maxim
        \bpeste\b .{0,20}(?:maxim|limit)|nu incape|scurta
    """,
    too_long=r"prea (?:lung|mare)|nu incape",
    unit="token",
    characters="caractere",
    limit=r"maxim\w*|limita|cel mult|permis\w*|fereastr\w+",
    used=r"contine|\bare\b|primit\w*|trimis\w*",
    period=r"pe (?:minut|secunda|ora|zi)\b|zilnic",
    rate=r"prea multe (?:cereri|solicitari|apeluri)|limita de (?:cereri|solicitari|rata)",
    quota=r"\bcredit\w* (?:insuficient|epuizat)|sold\b|\bplata\b|factur|abonament|reincarc",
    content_filter=r"""
        incalca .{0,40}(?:polit|regul|termen)|continut (?:inadecvat|interzis|daunator|sensibil)
    """,
    picture=r"imagin|fisier|atasament|poza",
    picture_fault=r"prea mare|nu este (?:acceptat|valid|suportat)|nevalid|deteriorat|depas",
    auth=r"""
        cheia.{0,24}(?:nu este valid|nevalid|invalid|gresit|expirat)|neautorizat
        acces (?:refuzat|interzis)
        autentific|model\w*.{0,30}nu (?:exist|a fost gasit|este disponibil)
    """,
    format=r"obligatori|lipseste|parametr\w+ .{0,16}(?:nevalid|invalid)|nu poate fi gol",
    transient=r"""
        incercati (?:din nou|mai tarziu)|supraincarcat|indisponibil
        eroare (?:interna|de server)
    """,
    later=r"din nou|asteptati|\bpeste\b",
    seconds="(?:de )?secund[ea]",
    minutes="(?:de )?minute?",
    hours="(?:de )?or[ea]",
)

HUNGARIAN = Language(
    input=r"\bkeres|uzenet|beszelget|bemenet|\bszoveg|elozmeny",
    window=r"kontextus|tokenkorlat|maximalis (?:hossz|token)",
    exceeds=r"""
        meghalad|tullep|tul (?:hosszu|nagy|sok)|(?:hosszabb|nagyobb|tobb) mint|legfeljebb|maxim
        nem fer bele|roviditse
    """,
    too_long=r"tul (?:hosszu|nagy)|nem fer bele",
    unit="token",
    characters="karakter",
    limit=r"maxim\w+|korlat\w*|legfeljebb|megengedett",
    used=r"tartalmaz|kapott|kuldott|all\b",
    period=r"(?:percen|masodpercen|oran)kent|napi",
    rate=r"tul sok (?:keres|hivas)|(?:keres|sebesseg)\w* korlat",
    quota=r"""
        egyenleg|fizetes|szamla|elofizetes|(?:kredit|keret)\w* .{0,16}(?:elfogy|kimer)
        feltolt
    """,
    content_filter=r"""
        (?:serti|megserti) .{0,40}(?:szabalyzat|iranyelv|feltetel)
        (?:tiltott|karos) tartalom
    """,
    picture=r"\bkep\b|\bkepet|\bfajl|melleklet",
    picture_fault=r"tul nagy|nem tamogatott|ervenytelen|serult",
    auth=r"""
        kulcs.{0,24}(?:ervenytelen|hibas|lejart)|(?:ervenytelen|hibas) .{0,16}kulcs|jogosulatlan
        (?:hozzaferes|belepes) .{0,12}(?:megtagad|elutasit)|hitelesit
        modell\w*.{0,30}(?:nem talalhato|nem letezik|nem erheto el)
    """,
    format=r"kotelezo|hianyz|ervenytelen (?:parameter|keres|formatum|ertek)|nem lehet ures",
    transient=r"probalja (?:ujra|meg)|kesobb|tulterhelt|nem erheto el|belso hiba",
    later=r"ujra|mulva|varjon",
    seconds="masodperc",
    minutes="perc",
    hours="ora",
)

GREEK = Language(
    input=r"αιτημα|μηνυμα|συνομιλι|εισοδο|κειμενο|ιστορικο",
    window=r"παραθυρο|συμφραζομεν|μεγιστ\w+ (?:μηκος|αριθμ)|οριο (?:των )?token",
    exceeds=r"""
        υπερβαιν|ξεπερν|πολυ μεγαλ|περισσοτερ|μεγαλυτερ|το πολυ|μεγιστ|δεν χωρα|συντομ
    """,
    too_long=r"(?:πολυ|υπερβολικα) (?:μεγαλ|μακρ)|δεν χωρα",
    unit="token|διακριτικ",
    characters="χαρακτηρ",
    limit=r"μεγιστ\w+|οριο|το πολυ|επιτρεπ\w+|παραθυρο",
    used=r"περιεχει|εχει|ελαβε|σταλθηκαν",
    period=r"ανα (?:λεπτο|δευτερολεπτο|ωρα|ημερα)|ημερησι",
    rate=r"(?:παρα )?πολλα αιτηματα|οριο (?:ρυθμου|αιτηματων)",
    quota=r"υπολοιπο|πληρωμη|τιμολογ|συνδρομ|πιστω\w+ .{0,20}(?:εξαντλ|επαρκ)|δεν επαρκ",
    content_filter=r"""
        παραβιαζ.{0,40}(?:πολιτικ|κανον|ορους)
        (?:ακαταλληλ|απαγορευμ|επιβλαβ)\w* περιεχομεν
    """,
    picture=r"εικονα|φωτογραφ|αρχειο|συνημμεν",
    picture_fault=r"πολυ μεγαλ|δεν υποστηριζ|μη εγκυρ|κατεστραμμ|υπερβαιν",
    auth=r"""
        κλειδι.{0,24}(?:δεν ειναι εγκυρο|ακυρο|μη εγκυρο|ληξ|λαθος)|μη εξουσιοδοτ|ταυτοποιησ
        (?:προσβαση).{0,20}(?:αρνηθηκε|απορριφθηκε|απαγορευεται)
        μοντελο.{0,30}δεν (?:βρεθηκε|υπαρχει|ειναι διαθεσιμο)
    """,
    format=r"υποχρεωτικ|απαιτειται|μη εγκυρ\w* (?:παραμετρ|αιτημα|μορφη|τιμη)|λειπει",
    transient=r"δοκιμαστε|αργοτερα|υπερφορτω|μη διαθεσιμ|εσωτερικο σφαλμα",
    later=r"ξανα|περιμενετε|\bσε\b",
    seconds="δευτερολεπτ[αο]",
    minutes="λεπτ[αο]",
    hours="ωρ(?:α|ες)",
)
