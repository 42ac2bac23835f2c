const setOf = (words: string): ReadonlySet<string> => new Set(words.split(/\s+/).filter(Boolean));

/** Written with a capital but no name of anything. All in lower case. */
export const NEVER_NAMES = setOf(`
  i monday tuesday wednesday thursday friday saturday sunday
  january february march april may june july august september october november december
  page pages chapter section table figure fig appendix annex article paragraph clause item note notes exhibit
  summary introduction contents mr mrs ms miss dr prof am pm ad bc ok etc eur usd gbp english
`);

/** Before a person's name; not part of it. */
export const TITLES = setOf(`
  mr mrs ms miss dr prof professor sir lady lord judge justice president senator captain colonel general minister
  chancellor governor mayor king queen prince princess pope chairman chairwoman director inspector detective father
`);

/** "… of X" is one name after these. */
export const HEADS_OF = setOf(`
  university bank ministry department battle siege treaty peace declaration duke duchess earl king queen prince
  princess lord bishop archbishop court house houses city republic kingdom isle isles bay gulf cape strait church
  institute college school museum order board council office bureau society academy association union state states
  commonwealth federation league bureau chamber district port tower palace cathedral act law statue lake mount sea
  hall faculty national central supreme royal federal
`);

export const JOINING = setOf("de da di del della des du la le van von der den ter bin ibn al el y");

export const ORGANIZATION_WORDS = setOf(`
  company co corporation corp inc incorporated ltd limited llc llp plc gmbh ag se sa nv bv oy ab kg
  university college school institute academy faculty ministry department council committee agency bank banking
  group holding holdings society association union trust foundation museum hospital clinic systems partners sons
  brothers works railway railways board office commission court senate parliament congress cabinet bureau survey
  organization organisation authority service services administration party movement league club team
  church police army navy force forces alliance consortium federation chamber fund capital ventures
  laboratory laboratories labs motors cars airlines airways energy electric pharmaceuticals chemicals industries
  technologies technology software solutions networks studios pictures records press post times journal gazette
  herald tribune news media nations powers cross traders consulting insurance logistics
`);

export const PLACE_WORDS = setOf(`
  river lake mount mountain mountains valley hill hills edge street road avenue lane bridge island islands sea ocean
  county city park forest bay beck dale moor fell face quarry harbour harbor station farm square canal channel
  gulf cape strait desert peninsula coast falls province district region republic kingdom airport castle palace
  tower cathedral abbey beach creek glacier plateau territory village pit mine
`);

export const EVENT_WORDS = setOf(`
  war battle siege treaty revolution revolt uprising hurricane typhoon earthquake olympics games cup festival summit
  conference congress symposium crisis election elections massacre accord agreement armistice mission expedition
  crusade crusades convention
`);

export const PRODUCT_WORDS = setOf(`
  telescope engine model series system edition framework library server database processor chip phone tablet camera
  aircraft missile rifle vaccine drug app protocol language
`);

/** A name that does one of these is a firm or an office, if nothing else is known of it. By lemma. */
export const ORGANIZATION_VERBS = setOf(`
  acquire employ announce launch fine appoint hire sue manufacture sell merge supply deliver produce invest fly
  develop release publish operate
`);

/** A firm's own: "shares of X", "X's founder". */
export const ORGANIZATION_NOUNS = setOf(`
  shares stock founder founders ceo executive chief employees employee factory customers subsidiary headquarters
  board management spokesman spokeswoman staff profits revenue
`);

/** What only people do. By lemma. */
export const PERSON_VERBS = setOf(`
  write say tell marry paint compose bear die study join found live walk teach argue invent discover resign retire
  graduate win meet
`);

export const PLACE_PREPOSITIONS = setOf("in near from across through around throughout outside inside");
