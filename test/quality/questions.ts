/** Questions about samples/, each with a definite answer. */
export interface SampleQuestion {
  readonly question: string;
  /** What finding the answer hinges on. */
  readonly by: "words" | "meaning" | "names";
  readonly expect: {
    /** Below samples/. */
    readonly file: string;
    /** Stands in the passage that answers the question, and in no other file. */
    readonly passage: string;
  };
}

const SURVEY = "survey/geological-survey.pdf";
const FLOOD = "archive/flood-report-1952.pdf";
const HANDBOOK = "handbook/employee-handbook.docx";
const BLASTING = "handbook/blasting.md";
const CRUSHER = "operations/crusher.md";
const WILDLIFE = "operations/wildlife.md";
const LOG = "operations/shift-log.txt";
const PRESS = "press/wender-blue.html";

export const SAMPLE_QUESTIONS: readonly SampleQuestion[] = [
  // The words of the question stand in the passage.
  words("What is the diameter of the blast holes in mm?", BLASTING, "diameter of 89 mm"),
  words("How much does a manganese jaw plate weigh?", CRUSHER, "weighs 1,850 kg"),
  words("How long does the proven reserve last?", SURVEY, "proven reserve of 11.3 million tonnes"),
  words("What did the survey cost?", SURVEY, "186,000 pounds"),
  words("How many days of paid leave are there a year?", HANDBOOK, "27 days of paid leave"),
  words("When are wages paid?", HANDBOOK, "on the 26th of each month"),
  words("What did the engineer put the loss of the flood at?", FLOOD, "23,400 pounds"),
  words("Where did the peregrine falcons nest?", WILDLIFE, "nested on the East Face every spring"),
  words("How many chicks have flown?", WILDLIFE, "Nineteen chicks"),
  words("Which blocks did the architects choose for the cathedral?", LOG, "numbers 88, 91 and 97"),
  words("What is the price of sound Wender Blue?", SURVEY, "410 pounds"),
  words("How many tonnes did the Marit Elise load?", LOG, "1,450 tonnes of armour stone"),

  // The same thing said differently.
  meaning(
    "How far must people keep away from an explosion?",
    BLASTING,
    "400 metres from the face in front and 250 metres behind it",
  ),
  meaning("What should be done if a charge fails to explode?", BLASTING, "never drilled out"),
  meaning(
    "How are animals warned or protected when rock is detonated?",
    BLASTING,
    "Horses frighten more easily",
  ),
  meaning("How does the company share its earnings with the staff?", HANDBOOK, "divided equally by heads"),
  meaning("Where do I go in an evacuation?", HANDBOOK, "assembly point at the weighbridge"),
  meaning("I am ill and cannot work today, whom do I tell?", HANDBOOK, "ring the control cabin"),
  meaning("Can I get time off because I had a baby?", HANDBOOK, "Birth or adoption of a child"),
  meaning("To whom can I turn in confidence if my boss treats me badly?", HANDBOOK, "ombudswoman"),
  meaning(
    "Why does the machine halt although nothing is displayed?",
    CRUSHER,
    "Look for the magnet over belt two",
  ),
  meaning("How was air pollution at the entrance reduced?", CRUSHER, "fallen from 1.9 to 0.4 milligrams"),
  meaning("What will become of the site when digging is over?", WILDLIFE, "lake of eleven hectares"),
  meaning(
    "What guarantees that the land is repaired if the firm goes bankrupt?",
    WILDLIFE,
    "bond of 1.2 million pounds",
  ),
  meaning("Which endangered amphibians live in the water?", WILDLIFE, "great crested newts"),
  meaning("From what creatures was the dark rock formed?", SURVEY, "broken stems of crinoids"),
  meaning(
    "What would happen if the barrier in the south were dug away?",
    SURVEY,
    "would empty into the quarry",
  ),
  meaning(
    "Is the grey rock suitable for the top layer of motorways?",
    SURVEY,
    "too low for the surface of a fast road",
  ),
  meaning("What caused the disaster underground?", FLOOD, "A fall of roof had blocked the mouth"),
  meaning(
    "How were the sleeping workers alerted to the rising water?",
    FLOOD,
    "sounded the whistle without a pause",
  ),
  meaning("How can one hear whether a piece of stone is flawless?", PRESS, "A good block rings"),
  meaning("When is the material easiest to carve?", PRESS, "worked while it is still wet from the ground"),
  meaning("Which injury happened to a trainee?", LOG, "cut his thumb on a belt fastener"),
  meaning("When did bad visibility prevent a detonation?", LOG, "No blast: fog until 12:30"),

  // A name leads there, alone or from one document to another.
  names("Who is Declan Pryce's deputy?", BLASTING, "his deputy, Sunniva Berg"),
  names("What did Cora Wilding do?", FLOOD, "engine driver, Miss Cora Wilding"),
  names("What is the job of Noor Haddad?", HANDBOOK, "pay, leave and training"),
  names(
    "Who discovered that Wender Blue had been used by medieval masons?",
    PRESS,
    "recognised in a drill core",
  ),
  names("What did Marek Dvorak find?", SURVEY, "jaw of the shark Petalodus"),
  names("Who maintained Big Nell before Priya Raman?", CRUSHER, "begun by Arvid Lunde"),
  names("Which company built Big Nell?", CRUSHER, "built by Halvorsen Maskin"),
  names("What happened to Walter Eames?", CRUSHER, "Walter Eames lost two fingers"),
  names(
    "What does Gwen Hartley do for the Wenderdale Naturalists' Trust?",
    WILDLIFE,
    "ringing is done by Gwen Hartley",
  ),
  names("With whose money did Josiah Tarn buy the land?", SURVEY, "money his sister Hester had earned"),
  names(
    "What does Northmoor College do for the geologists?",
    SURVEY,
    "thin sections were made by Yuki Tanabe",
  ),
  names("Why did Edith Callow telephone?", LOG, "cannot load before Friday because of the swell"),
];

function words(question: string, file: string, passage: string): SampleQuestion {
  return { question, by: "words", expect: { file, passage } };
}

function meaning(question: string, file: string, passage: string): SampleQuestion {
  return { question, by: "meaning", expect: { file, passage } };
}

function names(question: string, file: string, passage: string): SampleQuestion {
  return { question, by: "names", expect: { file, passage } };
}

/** Whether a text says so, however its lines were broken and whatever dashes and quotation marks it uses. */
export function saysPassage(text: string, passage: string): boolean {
  return plain(text).includes(plain(passage));
}

function plain(text: string): string {
  return text
    .normalize("NFKC")
    .replaceAll(/[“”„]/g, '"')
    .replaceAll(/[‘’]/g, "'")
    .replaceAll(/[*_`|\\]/g, " ")
    .replaceAll(/\s+/g, " ")
    .toLowerCase();
}
