"""Prose about two subjects in several languages, made of phrases that we wrote: as long as a test needs it."""

from random import Random
from typing import Final

LANGUAGES: Final = ("en", "de", "fr", "ru", "zh", "ja", "ar", "th")
SUBJECTS: Final = ("island", "kitchen")

# Of each subject: who, does what, where or when, and what follows; a line of each, phrases between bars.
_PHRASES: Final = {
    ("en", "island"): """
The ferryman|An old keeper|Our guide|Every visitor|The warden of the reserve|A group of walkers
checks the tide table|ties the boat to the iron ring|counts the seals on the sandbank|mends the gate by the dunes
before the causeway floods|on the northern cliffs|in the lee of the chapel|while the fog still lies over the bay
because the wind turns without warning|so that nobody is left behind at dusk|and writes the number into a blue book""",
    ("en", "kitchen"): """
The cook|My neighbour|A careful host|The baker from the corner|Whoever has patience|The apprentice
soaks the beans in cold water|fries the onions until they are golden|kneads the dough a second time|skims the broth
over the smallest flame|with a spoon of vinegar|in a heavy pan without a lid|long after the guests have sat down
or the whole stew tastes flat|which takes the best part of an hour|since salt can be added but never removed""",
    ("de", "island"): """
Der Fährmann|Die alte Wärterin|Unser Begleiter|Jede Besucherin|Ein Trupp Wanderer|Der Vogelwart
prüft die Gezeiten|vertäut den Kahn am Eisenring|zählt die Robben auf der Sandbank|flickt das Gatter an den Dünen
bevor das Watt überspült wird|an den nördlichen Klippen|im Windschatten der Kapelle|solange Nebel über der Bucht liegt
weil der Wind ohne Warnung dreht|damit abends niemand zurückbleibt|und schreibt die Zahl in ein blaues Heft""",
    ("de", "kitchen"): """
Die Köchin|Mein Nachbar|Ein umsichtiger Gastgeber|Die Bäckerin an der Ecke|Wer Geduld hat|Der Lehrling
weicht die Bohnen über Nacht ein|brät die Zwiebeln goldgelb|knetet den Teig ein zweites Mal|schöpft den Schaum ab
auf kleinster Flamme|mit einem Löffel Essig|in der schweren Pfanne ohne Deckel|lange nachdem die Gäste sitzen
sonst schmeckt der Eintopf fad|was fast eine Stunde dauert|denn Salz lässt sich nur zugeben""",
    ("fr", "island"): """
Le passeur|La vieille gardienne|Notre guide|Chaque visiteur|Une bande de marcheurs|Le garde de la réserve
vérifie l'heure des marées|amarre la barque à l'anneau|compte les phoques du banc de sable|répare la barrière des dunes
avant que la chaussée soit noyée|sur les falaises du nord|à l'abri de la chapelle|tant que la brume couvre la baie
car le vent tourne sans prévenir|pour que nul ne reste en arrière|et note le chiffre dans un cahier bleu""",
    ("fr", "kitchen"): """
La cuisinière|Mon voisin|Un hôte attentif|La boulangère du coin|Celui qui a de la patience|L'apprenti
fait tremper les haricots|dore les oignons sans les brûler|pétrit la pâte une seconde fois|écume le bouillon
sur la plus petite flamme|avec une cuillère de vinaigre|dans une lourde poêle|longtemps après l'arrivée des invités
sinon tout le ragoût reste fade|ce qui prend presque une heure|puisque le sel ne s'enlève jamais""",
    ("ru", "island"): """
Паромщик|Старая смотрительница|Наш проводник|Каждый приезжий|Группа туристов|Егерь заповедника
сверяет таблицу приливов|привязывает лодку к кольцу|считает тюленей на отмели|чинит калитку у дюн
пока дорогу не залило водой|на северных скалах|за стеной часовни|когда над бухтой ещё лежит туман
ведь ветер меняется внезапно|чтобы к вечеру никто не отстал|и записывает число в синюю тетрадь""",
    ("ru", "kitchen"): """
Повар|Моя соседка|Заботливый хозяин|Пекарь с угла|Терпеливый человек|Ученица
замачивает фасоль на ночь|жарит лук до золотистого цвета|месит тесто во второй раз|снимает пену с бульона
на самом слабом огне|с ложкой уксуса|в тяжёлой сковороде без крышки|когда гости давно уже сели
иначе похлёбка выйдет пресной|на что уходит почти час|потому что соль потом не убрать""",
    ("zh", "island"): """
摆渡人|年老的看守|我们的向导|每位游客|一队徒步者|保护区的巡查员
核对潮汐表|把小船系在铁环上|数着沙洲上的海豹|修补沙丘旁的栅门
在堤道被淹没之前|在北边的悬崖上|在小教堂背风的一侧|趁雾气还笼罩着海湾
因为风向说变就变|免得傍晚有人掉队|并把数目记在蓝色本子里""",
    ("zh", "kitchen"): """
厨师|我的邻居|细心的主人|街角的面包师|有耐心的人|小学徒
用冷水泡好豆子|把洋葱煎到金黄|再揉一遍面团|撇去汤里的浮沫
用最小的火|加一勺醋|在不盖盖子的厚锅里|等客人入座许久以后
否则整锅炖菜都没有味道|这要花上将近一个钟头|因为盐只能加不能减""",
    ("ja", "island"): """
渡し守|年老いた番人|案内役の男|訪れる人はみな|歩く人たちの一団|保護区の見回り
潮の時刻を確かめる|小舟を鉄の輪につなぐ|砂州のあざらしを数える|砂丘のそばの木戸を直す
堤の道が水に沈む前に|北の断崖の上で|礼拝堂の風下で|入り江に霧が残るうちに
風は前ぶれもなく変わるからだ|夕暮れに誰も取り残されないように|数は青い帳面に書きとめられる""",
    ("ja", "kitchen"): """
料理人|隣の奥さん|気のきく主人|角のパン職人|辛抱強い人|見習いの少年
豆を冷たい水にひたす|玉ねぎをきつね色に炒める|生地をもう一度こねる|煮汁のあくをすくう
いちばん弱い火で|酢をひとさじ加えて|ふたをしない厚い鍋で|客が席についてからも
さもないと煮込みの味がぼやける|それには一時間近くかかる|塩は足せても引けないからだ""",
    ("ar", "island"): """
صاحب العبارة|الحارس العجوز|دليلنا|كل زائر|جماعة من المشاة|مراقب المحمية
يراجع جدول المد والجزر|يربط القارب بالحلقة الحديدية|يعد الفقمات على الرمال|يصلح البوابة قرب الكثبان
قبل أن يغمر الماء الطريق|فوق المنحدرات الشمالية|في ظل الكنيسة الصغيرة|والضباب ما زال يغطي الخليج
لأن الريح تنقلب بلا إنذار|كي لا يتخلف أحد عند الغروب|ثم يكتب العدد في دفتر أزرق""",
    ("ar", "kitchen"): """
الطباخ|جارتي|المضيف الحريص|خباز الحي|من عنده صبر|المتدرب الصغير
ينقع الفاصوليا في الماء البارد|يقلي البصل حتى يصير ذهبيا|يعجن العجين مرة ثانية|يزيل الرغوة عن المرق
على أهدأ نار|مع ملعقة من الخل|في قدر ثقيلة دون غطاء|بعد جلوس الضيوف بوقت طويل
وإلا بقي الطعام بلا مذاق|وهذا يستغرق قرابة ساعة|فالملح يضاف ولا ينزع""",
    ("th", "island"): """
คนแจวเรือข้ามฟาก|ยามชรา|คนนำทางของเรา|ผู้มาเยือนทุกคน|คณะนักเดินป่า|เจ้าหน้าที่เขตอนุรักษ์
ตรวจดูตารางน้ำขึ้นน้ำลง|ผูกเรือไว้กับห่วงเหล็ก|นับแมวน้ำบนสันทราย|ซ่อมประตูไม้ข้างเนินทราย
ก่อนที่น้ำจะท่วมทางเดิน|บนหน้าผาด้านเหนือ|หลังกำแพงโบสถ์เล็ก|ขณะที่หมอกยังคลุมอ่าว
เพราะลมเปลี่ยนทิศโดยไม่เตือน|เพื่อไม่ให้ใครตกค้างยามค่ำ|แล้วจดจำนวนลงในสมุดสีน้ำเงิน""",
    ("th", "kitchen"): """
พ่อครัว|เพื่อนบ้านของฉัน|เจ้าบ้านผู้ใส่ใจ|คนทำขนมปังหัวมุม|ใครที่ใจเย็นพอ|เด็กฝึกงาน
แช่ถั่วในน้ำเย็นข้ามคืน|ผัดหอมใหญ่จนเหลืองทอง|นวดแป้งอีกรอบ|ช้อนฟองออกจากน้ำซุป
ด้วยไฟอ่อนที่สุด|กับน้ำส้มหนึ่งช้อน|ในกระทะหนาที่ไม่ปิดฝา|หลังจากแขกนั่งลงนานแล้ว
มิฉะนั้นแกงทั้งหม้อจะจืด|ซึ่งกินเวลาเกือบหนึ่งชั่วโมง|เพราะเกลือเติมได้แต่เอาออกไม่ได้""",
}
_SPACED: Final = frozenset(["en", "de", "fr", "ru", "ar"])
_ENDS: Final = {"zh": "。", "ja": "。", "th": " "}
_COMMAS: Final = {"zh": "，", "ja": "、", "th": " ", "ar": "، "}


def prose(language: str, subject: str, chars: int, seed: int = 0) -> list[str]:
    """Return paragraphs of about so many characters together, with one to three sentences each."""
    rng = Random(f"{language} {subject} {seed}")
    paragraphs: list[str] = []
    while sum(map(len, paragraphs)) < chars:
        between = " " if language in _SPACED else ""
        paragraphs.append(between.join(_sentence(language, subject, rng) for _ in range(rng.randint(1, 3))))
    return paragraphs


def _sentence(language: str, subject: str, rng: Random) -> str:
    lines = _PHRASES[language, subject].strip().split("\n")
    who, does, where, then = (rng.choice(line.split("|")) for line in lines)
    space = " " if language in _SPACED else ""
    return f"{who}{space}{does}{space}{where}{_COMMAS.get(language, ', ')}{then}{_ENDS.get(language, '.')}"
