"""Sentences of several languages, for what guesses a charset: letters at random are no language."""

from __future__ import annotations

SENTENCES = {
    "german": "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit "
    "Vernunft und Gewissen begabt und sollen einander im Geiste der Brüderlichkeit begegnen. Jeder "
    "hat Anspruch auf die in dieser Erklärung verkündeten Rechte und Freiheiten ohne irgendeinen "
    "Unterschied, etwa nach Rasse, Hautfarbe, Geschlecht, Sprache oder Überzeugung.",
    "french": "Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont "
    "doués de raison et de conscience et doivent agir les uns envers les autres dans un esprit de "
    "fraternité. Chacun peut se prévaloir de tous les droits et de toutes les libertés proclamés "
    "dans la présente Déclaration, sans distinction aucune, notamment de sexe, d'opinion ou de "
    "fortune, là où il est né.",
    "polish": "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Są "
    "oni obdarzeni rozumem i sumieniem i powinni postępować wobec innych w duchu braterstwa. Każdy "
    "człowiek posiada wszystkie prawa i wolności zawarte w niniejszej Deklaracji bez względu na "
    "różnice rasy, koloru, płci, języka, wyznania czy poglądów politycznych.",
    "czech": "Všichni lidé se rodí svobodní a sobě rovní co do důstojnosti a práv. Jsou nadáni "
    "rozumem a svědomím a mají spolu jednat v duchu bratrství. Každý má všechna práva a všechny "
    "svobody, stanovené touto deklarací, bez jakéhokoli rozlišování, zejména podle rasy, barvy, "
    "pohlaví, jazyka, náboženství, politického nebo jiného smýšlení.",
    "turkish": "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana "
    "sahiptirler ve birbirlerine karşı kardeşlik zihniyeti ile hareket etmelidirler. Herkes, ırk, "
    "renk, cinsiyet, dil, din, siyasi veya diğer herhangi bir akide farkı gözetilmeksizin bu "
    "beyannamede ilan olunan bütün haklardan ve hürriyetlerden istifade edebilir.",
    "greek": "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. "
    "Είναι προικισμένοι με λογική και συνείδηση και οφείλουν να συμπεριφέρονται μεταξύ τους με "
    "πνεύμα αδελφοσύνης. Κάθε άνθρωπος δικαιούται να επικαλείται όλα τα δικαιώματα και όλες τις "
    "ελευθερίες που προκηρύσσει η παρούσα διακήρυξη.",
    "russian": "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены "
    "разумом и совестью и должны поступать в отношении друг друга в духе братства. Каждый человек "
    "должен обладать всеми правами и всеми свободами, провозглашенными настоящей Декларацией, без "
    "какого бы то ни было различия.",
    "ukrainian": "Всі люди народжуються вільними і рівними у своїй гідності та правах. Вони "
    "наділені розумом і совістю і повинні діяти у відношенні один до одного в дусі братерства. "
    "Кожна людина повинна мати всі права і всі свободи, проголошені цією Декларацією, незалежно "
    "від раси, кольору шкіри, статі, мови, релігії.",
    "hebrew": "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם. כולם חוננו בתבונה ובמצפון, "
    "לפיכך חובה עליהם לנהוג איש ברעהו ברוח של אחווה. כל אדם זכאי לזכויות ולחרויות שנקבעו בהכרזה "
    "זו ללא הפליה כלשהי מטעמי גזע, צבע, מין, לשון, דת, דעה פוליטית.",
    "arabic": "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق. وقد وهبوا عقلا وضميرا وعليهم أن "
    "يعامل بعضهم بعضا بروح الإخاء. لكل إنسان حق التمتع بكافة الحقوق والحريات الواردة في هذا "
    "الإعلان، دون أي تمييز، كالتمييز بسبب العنصر أو اللون أو الجنس أو اللغة أو الدين.",
    "chinese": "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。"
    "人人有资格享有本宣言所载的一切权利和自由，不分种族、肤色、性别、语言、宗教、政治或其他见解。",
    "taiwanese": "人人生而自由，在尊嚴和權利上一律平等。他們賦有理性和良心，並應以兄弟關係的精神相對待。"
    "人人有資格享有本宣言所載的一切權利和自由，不分種族、膚色、性別、語言、宗教、政治或其他見解。",
    "japanese": "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。"
    "人間は、理性と良心とを授けられており、互いに同胞の精神をもって行動しなければならない。",
    "korean": "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 인간은 천부적으로 "
    "이성과 양심을 부여받았으며 서로 형제애의 정신으로 행동하여야 한다. 모든 사람은 인종, 피부색, 성, "
    "언어, 종교 등 어떠한 종류의 차별이 없이 이 선언에 규정된 모든 권리와 자유를 향유할 자격이 있다.",
    "thai": "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ต่างมีเหตุผลและมโนธรรม "
    "และควรปฏิบัติต่อกันด้วยเจตนารมณ์แห่งภราดรภาพ",
    "english": "All human beings are born free and equal in dignity and rights. They are endowed "
    "with reason and conscience and should act towards one another in a spirit of brotherhood.",
}
CHARSETS = {
    "german": ("utf-8", "iso-8859-1", "windows-1252", "utf-16", "iso-8859-15"),
    "french": ("utf-8", "iso-8859-1", "windows-1252", "utf-16", "iso-8859-15"),
    "polish": ("utf-8", "iso-8859-2", "windows-1250"),
    "czech": ("utf-8", "iso-8859-2", "windows-1250"),
    "turkish": ("utf-8", "iso-8859-9", "windows-1254"),
    "greek": ("utf-8", "iso-8859-7", "windows-1253"),
    "russian": ("utf-8", "koi8-r", "windows-1251", "iso-8859-5", "utf-16"),
    "ukrainian": ("utf-8", "koi8-u", "windows-1251"),
    "hebrew": ("utf-8", "windows-1255", "iso-8859-8"),
    "arabic": ("utf-8", "windows-1256", "iso-8859-6"),
    "chinese": ("utf-8", "gb2312", "gbk", "gb18030"),
    "taiwanese": ("utf-8", "big5"),
    "japanese": ("utf-8", "shift_jis", "euc-jp", "iso-2022-jp"),
    "korean": ("utf-8", "euc-kr"),
    "thai": ("utf-8", "tis-620"),
    "english": ("utf-8", "us-ascii"),
}
