"""Words of refusals in more languages, by what they mean: one entry makes a language known.

`agent.providers.vocabulary`, `denials` and `number_words` hold English, Chinese, Japanese, Korean,
Russian, Spanish, Portuguese, French and German, and put these beside them. All are patterns for
`refusal_text.uniform` text: lower case, no accents on Latin and Greek letters and no vowel signs on
Arabic and Hebrew ones, `d` for đ, `l` for ł, `o` for ø and `i` for ı. A text of several lines is a
choice of its lines.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from agent.providers.language import Language
from agent.providers.languages_asia import BENGALI, HEBREW, PERSIAN, TAMIL, THAI
from agent.providers.languages_europe import (
    CZECH,
    DUTCH,
    GREEK,
    HUNGARIAN,
    POLISH,
    ROMANIAN,
    SWEDISH,
    UKRAINIAN,
)
from agent.providers.languages_more import (
    BULGARIAN,
    CATALAN,
    CROATIAN,
    FINNISH,
    NORWEGIAN,
    SLOVAK,
    URDU,
)

ITALIAN = Language(
    input=r"richiest|messagg|conversazion|\btesto\b|cronologia",
    window=r"""
        finestra di contesto|numero massimo di token|limite di token
        lunghezza (?:massima|consentita)
    """,
    exceeds=r"""
        eccede|oltrepass|superior[ei] |al massimo|massimo (?:di|consentit)
        troppo (?:lung|grand|estes)
        non (?:entra|rientra)|riduc|ridurre|accorcia
    """,
    too_long=r"(?:troppo|eccessivamente) (?:lung|grand|estes)|non (?:entra|rientra)",
    unit="token",
    characters="caratteri",
    limit=r"massim\w+|limite|consentit\w|ammess\w|accetta\w*|finestra",
    used=r"contiene|contien|ricevut\w|inviat\w|conta\b|pari a",
    period=r"(?:al|per) (?:minuto|secondo|giorno)|all'ora",
    rate=r"troppe (?:richieste|chiamate)|limite di (?:richieste|frequenza|velocita)",
    quota=r"""
        credit[oi] (?:insuff|esaurit|residu)|ricarica|fatturazione|quota .{0,40}esaurit|abbonament
    """,
    content_filter=r"""
        \bviola(?:no)? .{0,40}(?:norm|polit|regol|linee|termin)
        contenut\w+ .{0,30}(?:inappropriat|vietat|bloccat|sensibil|dannos)
        (?:filtro|politica|norm\w+) (?:dei|sui|di) contenut
    """,
    picture=r"immagin[ei]|\ballegat[oi]\b|\bfoto\b|filmat|documento allegato",
    picture_fault=r"non (?:e )?(?:support|valid|leggibil|puo)|troppo|danneggiat|corrott|supera",
    auth=r"""
        chiave.{0,24}(?:non (?:e )?(?:valid|corrett)|errat|scadut|mancant)|non autorizzat
        autenticazione
        accesso negato
        modello.{0,40}(?:non (?:esiste|e stato trovato|trovat|e? ?disponibil)|inesistent)
    """,
    format=r"""
        obbligatori|parametr\w+ .{0,16}(?:non valid|errat|mancant)|formato .{0,12}non valid
        \bmanca(?:no)?\b
        non puo essere vuot
    """,
    transient=r"riprova|non disponibil|sovraccaric|\boccupat[oi]\b|errore interno|tempo scaduto",
    later=r"riprova\w*|attend\w+|\btra\b|\bfra\b|\bdopo\b",
    seconds="second[io]",
    minutes="minut[io]",
    hours="or[ae]",
)

ARABIC = Language(
    input=r"طلب|[إا]دخال|مدخل|رسال|رسائل|محادث|المطالبة|\bالنص",
    window=r"سياق|الحد ال[أا]قص[ىي]|حد الرموز|عدد الرموز",
    exceeds=r"""
        تجاوز|يفوق|يزيد|تزيد|طويل|[أا]طول من|[أا]كبر من|كبيرة? جدا|الحد ال[أا]قص[ىي]|ي?ت?تسع
        المسموح|اختصر
    """,
    too_long=r"طويلة?|[أا]طول من|[أا]كبر من|كبيرة? جدا|لا ي?ت?تسع",
    unit="رمز|رموز|توكن",
    characters="حرف|[أا]حرف|حروف",
    limit=r"الحد|[أا]قص[ىي]|المسموح|من [أا]صل|سياق|فقط|حد",
    used=r"يحتوي|تحتوي|يضم|عدد|يبلغ|[أا]رسلت|هي",
    period=r"(?:في|لكل|كل) (?:ال)?(?:دقيق|ثاني|ساع|يوم)|بالدقيق|يومي",
    rate=r"""
        عدد (?:كبير من )?(?:ال)?طلبات|طلبات (?:كثير|زائد)|كثير من الطلبات
        معدل (?:ال)?(?:طلب|استخدام)
    """,
    quota=r"رصيد|شحن الحساب|الدفع|فواتير|فاتور|اشتراك|(?:ال)?حصة .{0,24}(?:نفد|انته)|نفدت",
    content_filter=r"""
        (?:خالف|نتهك|انتهاك).{0,30}(?:سياس|[إا]رشاد|شروط|قواعد|معايير)|سياس\w* (?:ال)?محتو
        محتو\w* .{0,20}(?:محظور|غير لائق|غير مناسب|ضار|حساس|مخالف)
    """,
    picture=r"صورة|صور|فيديو|مرفق|(?:ال)?ملف|وسائط",
    picture_fault=r"غير مدعوم|غير صالح|كبير|تالف|تجاوز|لا يدعم|لا تدعم|لا يمكن|تعذر",
    auth=r"""
        مفتاح.{0,24}(?:غير صالح|غير صحيح|خاط|منته|مفقود)|غير (?:مصرح|مخول)|مصادقة|رفض الوصول|صلاحيات
        نموذج.{0,30}غير (?:موجود|متاح|متوفر)|العثور على (?:ال)?نموذج
    """,
    format=r"الحقل|حقل|المعلم|معلمة|تنسيق|مفقود|مطلوب",
    transient=r"مشغول|لاحقا|غير (?:متاح|متوفر)|خط[أا] داخلي|مهلة|ازدحام|حمل زائد|ضغط|مجددا",
    later=r"بعد|حاول|انتظ\w+|خلال",
    seconds="ثاني\\w*|ثوان\\w*",
    minutes="دقيق\\w*|دقائق",
    hours="ساع\\w*",
)

TURKISH = Language(
    input=r"\bistek|\bistem\b|girdi|\bgiris|mesaj|konusma|sohbet|metin|baglam",
    window=r"baglam|token (?:sinir|limit)|azami|uzunluk (?:sinir|limit)",
    exceeds=r"""
        \bas(?:iyor|ti|an|ildi|makta|mis)|(?:cok|fazla) (?:uzun|buyuk)|en fazla|sigm[iua]|olamaz
        kisalt
        daha (?:uzun|buyuk|fazla)
    """,
    too_long=r"(?:cok|fazla) (?:uzun|buyuk)|sigm[iua]",
    unit="token|belirtec",
    characters="karakter",
    limit=r"en fazla|sinir\w*|limit\w*|azami|maksimum|izin verilen",
    used=r"icer\w+|istenen|gonderilen|alinan|talep|degeri|toplam",
    period=r"""
        (?:dakika|saniye|saat|gun) (?:basina|icinde)|(?:dakika|saniye|saat)da|gunde|gunluk|saatlik
    """,
    rate=r"""
        (?:cok|fazla) (?:fazla |sayida )?istek|istek (?:sinir|limit|hiz|sayi)|hiz (?:sinir|limit)
        istek gonder.{0,20}cok
    """,
    quota=r"""
        bakiye|yetersiz kredi|kredi\w* .{0,12}(?:yetersiz|bitti|tuken)|odeme|fatura
        \bkota\w* .{0,24}(?:dol|tuken|bitti)|abonelig
    """,
    content_filter=r"""
        icerik (?:polit|filtre|kural)|polit\w+ .{0,40}(?:ihlal|aykiri|izin ver)|uygunsuz icerik
        (?:zararli|hassas|yasakl\w+) icerik|kurallar\w+ .{0,20}(?:ihlal|aykiri)
    """,
    picture=r"gorsel|goruntu|\bresim|\bresm|fotograf|dosya",
    picture_fault=r"cok buyuk|desteklen?m|gecersiz|bozuk|okunam|islenem|asiyor",
    auth=r"""
        anahtar\w*.{0,24}(?:gecersiz|hatali|yanlis|suresi|eksik)|gecersiz .{0,16}anahtar|yetkisiz
        yetkiniz|kimlik dogrula|erisim .{0,12}(?:red|engel)|model.{0,30}(?:bulunamadi|mevcut degil)
    """,
    format=r"zorunlu|gerekli (?:alan|parametre)|eksik (?:alan|parametre)|bos olamaz|bicim",
    transient=r"""
        mesgul|tekrar dene|daha sonra|yogun|kullanilamiyor|(?:sunucu|dahili) hata|zaman asimi
    """,
    later=r"tekrar|bekle\w*|sonra",
    seconds="saniye",
    minutes="dakika",
    hours="saat",
)

HINDI = Language(
    input=r"अनुरोध|संदेश|प्रॉम्प्ट|इनपुट|वार्तालाप|बातचीत|पाठ|टेक्स्ट",
    window=r"संदर्भ|कॉन्टेक्स्ट|अधिकतम|टोकन (?:की )?सीमा",
    exceeds=r"""
        से अधिक|से ज्यादा|से ज़्यादा|बहुत (?:अधिक|लंब|बड़)|अधिकतम|सीमा (?:से|को|पार)|छोटा करें|पार
    """,
    too_long=r"(?:बहुत|अत्यधिक|ज़्यादा|ज्यादा) (?:लंब|बड़)|समा नहीं",
    unit="टोकन",
    characters="वर्ण|अक्षर",
    limit=r"अधिकतम|सीमा|केवल|संदर्भ",
    used=r"कुल|भेजे|मांगे|आपने",
    period=r"प्रति (?:मिनट|सेकंड|घंट|दिन)|(?:एक )?मिनट में|दैनिक",
    rate=r"""
        (?:अधिक|ज्यादा|ज़्यादा) (?:अनुरोध|रिक्वेस्ट)|(?:अनुरोध|दर)\S* (?:की )?(?:दर|सीमा)|रेट लिमिट
    """,
    quota=r"शेष राशि|बैलेंस|क्रेडिट|भुगतान|रिचार्ज|सदस्यता|कोटा .{0,24}(?:समाप्त|खत्म|ख़त्म)",
    content_filter=r"""
        (?:नीति|नियम|दिशानिर्देश|शर्त)\S* .{0,30}(?:उल्लंघन|विरुद्ध|खिलाफ|ख़िलाफ़)
        सामग्री (?:नीति|फ़िल्टर|फिल्टर)|(?:अनुचित|आपत्तिजनक|हानिकारक|संवेदनशील) सामग्री
    """,
    picture=r"चित्र|छवि|तस्वीर|इमेज|वीडियो|फ़ाइल|फाइल|ऑडियो",
    picture_fault=r"बहुत बड़|समर्थित नहीं|अमान्य|दूषित|अधिक|पढ़\S* नहीं|असमर्थ",
    auth=r"""
        कुंजी.{0,20}(?:अमान्य|गलत|ग़लत|समाप्त)|(?:अमान्य|गलत|ग़लत) .{0,12}(?:कुंजी|key)|अनुमति नहीं
        प्रमाणीकरण|अधिकृत नहीं|मॉडल.{0,30}(?:नहीं मिला|मौजूद नहीं|उपलब्ध नहीं)
    """,
    format=r"आवश्यक|अनिवार्य|प्रारूप|पैरामीटर|खाली नहीं",
    transient=r"व्यस्त|बाद में|पुनः प्रयास|फिर से|अनुपलब्ध|आंतरिक त्रुटि|ओवरलोड|समय समाप्त",
    later=r"बाद|पुनः|प्रतीक्षा",
    seconds="सेकंड|सेकेंड",
    minutes="मिनट",
    hours="घंट\\S*",
)

VIETNAMESE = Language(
    input=r"yeu cau|tin nhan|hoi thoai|noi dung|dau vao|van ban|lich su",
    window=r"ngu canh|gioi han (?:token|do dai)|so token toi da|do dai (?:toi da|cho phep)",
    exceeds=r"\bvuot|qua (?:dai|lon|nhieu)\b|(?:lon|nhieu|dai) hon|toi da|rut ngan",
    too_long=r"qua (?:dai|lon)\b|dai hon|khong vua",
    unit="token",
    characters="ky tu",
    limit=r"toi da|gioi han|muc toi da|chi ho tro|ngu canh",
    used=r"\bco\b|chua|nhan duoc|da gui|yeu cau",
    period=r"(?:moi|tren|mot|trong) (?:phut|giay|gio|ngay)\b|hang ngay",
    rate=r"qua nhieu (?:yeu cau|lan goi)|gioi han (?:tan suat|toc do|yeu cau)|tan suat",
    quota=r"""
        \bso du\b|nap (?:them )?tien|thanh toan|hoa don|han muc .{0,24}\bhet\b
        \bhet (?:han muc|tien)
    """,
    content_filter=r"""
        vi pham .{0,30}(?:chinh sach|dieu khoan|quy dinh|tieu chuan)|(?:chinh sach|bo loc) noi dung
        noi dung .{0,16}(?:nhay cam|doc hai|bi cam|khong phu hop)
    """,
    picture=r"hinh anh|\banh\b|\btep\b|tap tin|dinh kem",
    picture_fault=r"""
        qua (?:lon|nho)\b|khong (?:duoc )?ho tro|khong hop le|bi hong|\bvuot|khong the doc
    """,
    auth=r"""
        (?:khoa|key)\b.{0,24}(?:khong hop le|khong dung|\bsai\b|het han)|khong co quyen|xac thuc
        tu choi truy cap|truy cap bi tu choi
        mo hinh.{0,30}khong (?:ton tai|tim thay|co san|kha dung)
        khong tim thay mo hinh
    """,
    format=r"bat buoc|\bthieu\b|tham so|sai dinh dang|dinh dang khong|khong duoc de trong",
    transient=r"""
        thu lai|qua tai|dang ban\b|khong kha dung|loi (?:may chu|noi bo)|het thoi gian|tam thoi
    """,
    later=r"thu lai|\bdoi\b|\bsau\b",
    seconds="giay",
    minutes="phut",
    hours="gio",
)

INDONESIAN = Language(
    input=r"permintaan|\bpesan\b|percakapan|masukan|\bteks\b|riwayat",
    window=r"konteks|batas token|jumlah token|panjang (?:maks|yang di)",
    exceeds=r"""
        melebihi|melampaui|terlalu (?:panjang|besar|banyak)|lebih (?:dari|panjang|besar)
        tidak muat|maksim\w+|persingkat
    """,
    too_long=r"terlalu (?:panjang|besar)|tidak muat",
    unit="token",
    characters="karakter",
    limit=r"maksim\w+|batas|paling banyak|hanya|konteks",
    used=r"berisi|berjumlah|diminta|dikirim|memiliki",
    period=r"per (?:menit|detik|jam|hari)\b|harian",
    rate=r"terlalu banyak (?:permintaan|panggilan)|batas (?:laju|permintaan|kecepatan)",
    quota=r"""
        kredit .{0,12}(?:habis|tidak)|pembayaran|tagihan|isi ulang
        kuota .{0,24}(?:habis|terlampaui)|langganan
    """,
    content_filter=r"""
        melanggar .{0,30}(?:kebijakan|aturan|ketentuan|pedoman)|kebijakan konten
        konten .{0,20}(?:terlarang|sensitif|tidak pantas|berbahaya|diblokir)
    """,
    picture=r"\bgambar|\bfoto\b|berkas|lampiran",
    picture_fault=r"""
        terlalu (?:besar|kecil)|tidak (?:didukung|valid|dapat|bisa)|rusak|melebihi|gagal
    """,
    auth=r"""
        kunci\b.{0,24}(?:tidak (?:valid|sah|benar)|salah|kedaluwarsa)
        tidak (?:berwenang|memiliki akses)
        akses ditolak|[ao]utentikasi|model\b.{0,30}tidak (?:ditemukan|ada|tersedia)
    """,
    format=r"wajib|parameter .{0,16}(?:tidak|salah|hilang)|tidak boleh kosong|diperlukan",
    transient=r"""
        coba (?:lagi|kembali)|sibuk|tidak tersedia|kesalahan (?:server|internal)|kelebihan beban
    """,
    later=r"lagi|setelah|tunggu",
    seconds="detik",
    minutes="menit",
    hours="jam",
)

ALL: Final = (
    ITALIAN,
    ARABIC,
    TURKISH,
    HINDI,
    VIETNAMESE,
    INDONESIAN,
    HEBREW,
    PERSIAN,
    THAI,
    BENGALI,
    TAMIL,
    DUTCH,
    POLISH,
    CZECH,
    UKRAINIAN,
    SWEDISH,
    ROMANIAN,
    HUNGARIAN,
    GREEK,
    FINNISH,
    NORWEGIAN,
    SLOVAK,
    BULGARIAN,
    CROATIAN,
    CATALAN,
    URDU,
)


def _lines(meaning: str) -> str:
    return "\n".join(str(getattr(language, meaning)) for language in ALL)


MORE: Final = Language(**{field.name: _lines(field.name) for field in fields(Language)})
"""The words of all of them for each meaning."""
