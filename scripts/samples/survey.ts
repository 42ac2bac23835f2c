import type { PdfBlock } from "../../test/support/typeset.ts";

export const SURVEY_TITLE = "The Limestone of Hollin Edge";

/** The report: two parts in one column with a part in two columns between them. */
export const SURVEY: readonly { readonly columns: 1 | 2; readonly blocks: readonly PdfBlock[] }[] = [
  {
    columns: 1,
    blocks: [
      { heading: SURVEY_TITLE },
      {
        paragraph:
          "Report NGS 24/117 of the Northmoor Geological Survey, prepared for the Tarnbrook Stone Company by Dr. Amara Nwosu and Piotr Halloran.",
      },
      { heading: "1 Summary", level: 2 },
      {
        paragraph:
          "The Survey was asked how much stone is left at Hollin Edge, of what kind it is, and what the water in the lower benches will do if the quarry is deepened. Between May and October fourteen boreholes were drilled with a total length of 1,126 metres, and all cores were logged and photographed.",
      },
      {
        paragraph:
          "At the present rate of extraction, about 480,000 tonnes a year, the proven reserve of 11.3 million tonnes will last until the permission ends. The dark limestone known as Wender Blue makes up less than a twentieth of it, yet by value it is more than a third. We advise the company to leave the southern pillar in place, because it holds back the water of the Mossy Level.",
      },
      { heading: "2 Where the quarry lies", level: 2 },
      {
        paragraph:
          "Hollin Edge is a scarp of limestone on the north side of Wenderdale, 262 metres above the sea at its highest point. The village of Marrow Cross lies one kilometre to the south and the port of Stainmouth nineteen kilometres to the east. The river Wender runs below the quarry and takes up all the water that is pumped from it.",
      },
      {
        paragraph:
          "Stone has been taken here since the Middle Ages. Josiah Tarn bought the land in 1893 with money his sister Hester had earned as a photographer, and it was she who kept the books of the firm until 1931. A light railway carried the stone to the coast until 1964; its bed is now the haul road.",
      },
      { break: "page" },
      { heading: "3 Boreholes", level: 2 },
      {
        paragraph:
          "Table 1 lists the boreholes that reached the base of the limestone. Depths are metres below the ground at the collar of the hole. The core of BH-07 was lost between 31 and 34 metres, where the drill fell into an open cave.",
      },
      {
        table: [
          ["Borehole", "Bench", "Depth (m)", "Base (m)", "Wender Blue (m)"],
          ["BH-01", "one", "92", "88.4", "2.1"],
          ["BH-03", "two", "86", "81.0", "2.9"],
          ["BH-04", "two", "79", "77.2", "3.4"],
          ["BH-07", "four", "71", "66.5", "6.8"],
          ["BH-09", "four", "68", "63.1", "6.2"],
          ["BH-12", "south pillar", "104", "99.7", "4.0"],
          ["BH-14", "east face", "83", "80.3", "none"],
        ],
      },
      {
        paragraph:
          "The ornamental bed is thickest under bench four and is missing altogether in the east, where it was worn away before the next layer was laid down.",
      },
    ],
  },
  {
    columns: 2,
    blocks: [
      { heading: "4 The rocks", level: 2 },
      {
        paragraph:
          "Four units can be told apart in every core. From the bottom to the top they are the Kettle Shale, the Lower Grey, the Wender Blue and the Upper Grey.",
      },
      { heading: "Kettle Shale", level: 3 },
      {
        paragraph:
          "Black mudstone that splits like paper. It lets no water through and forms the floor of the quarry. When it is exposed to frost it falls to mud within one winter, so that no building may be founded on it.",
      },
      { heading: "Lower Grey", level: 3 },
      {
        paragraph:
          "Pale limestone in beds of one to two metres, with a few bands of clay. It makes good aggregate: its crushing value is 21 and its polished stone value 39. The latter is too low for the surface of a fast road, where tyres would soon polish it smooth, but ample for the layers beneath.",
      },
      { heading: "Wender Blue", level: 3 },
      {
        paragraph:
          "Almost black when wet, blue grey when dry. The stone consists of the broken stems of crinoids, or sea lilies, that lived in a warm and shallow sea some 330 million years ago. The spaces between them are filled with calcite so tightly that less than half a percent of the volume is pore. This is why it takes a polish and why frost does it no harm.",
      },
      {
        paragraph:
          "A jaw of the shark Petalodus was found in this bed in July by a driver, Marek Dvorak, who stopped his machine in time. It can be seen in the Stainmouth Museum.",
      },
      { heading: "Upper Grey", level: 3 },
      {
        paragraph:
          "Thin and crumbling beds under the turf, with flint. It is removed as overburden and used for banks and for the restoration of old benches.",
      },
      { heading: "5 Folds and joints", level: 2 },
      {
        paragraph:
          "The beds dip by six degrees to the south east. They are cut by two sets of joints: the main set runs north to south, every two to five metres, the other across it and further apart. Where both are open, blocks of more than eight tonnes can be won. Along the Scarth Fault, which crosses the site at the old incline, everything is shattered over a width of twenty metres and fit only for fill.",
      },
      {
        paragraph:
          "The face should not be worked parallel to the main joints. In 1978 a wedge of 3,000 tonnes slid out of the north face overnight for this reason. Nobody was hurt, as it was Christmas Eve.",
      },
    ],
  },
  {
    columns: 1,
    blocks: [
      { heading: "6 Water", level: 2 },
      {
        paragraph:
          "The limestone is full of water up to 171 metres above the sea. Bench five would lie eight metres below that level. A pumping test in borehole BH-12 over nine days, at fourteen litres a second, lowered the water in the Mossy Level by 1.9 metres and in the spring of Birk Howe farm by forty centimetres.",
      },
      {
        paragraph:
          "The Mossy Level is a drain that lead miners drove into the hill around 1790. It still carries a third of all the water, and its mouth was blocked in the flood of 1952. Should the south pillar be removed, the level would empty into the quarry. The pumps installed at present, which lift 95 litres a second together, could not keep up with it.",
      },
      { heading: "7 Reserves", level: 2 },
      {
        table: [
          ["Unit", "Tonnes", "Use", "Price a tonne"],
          ["Lower Grey", "9,700,000", "aggregate", "9 pounds"],
          ["Wender Blue, sound", "210,000", "blocks", "410 pounds"],
          ["Wender Blue, broken", "330,000", "armour stone", "31 pounds"],
          ["Upper Grey", "1,060,000", "fill", "3 pounds"],
        ],
      },
      {
        paragraph:
          "The figures leave out the south pillar and a strip of thirty metres along the footpath. They assume that one block in two is rejected, which agrees with the experience of the first two years of sawing.",
      },
      { heading: "8 Recommendations", level: 2 },
      {
        bullets: [
          "Leave the south pillar untouched, at least until the Mossy Level has been plugged.",
          "Work bench four from east to west, at right angles to the main joints.",
          "Keep every core of the ornamental bed; the store at Northmoor College has room.",
          "Measure the spring of Birk Howe farm every week and compensate its owner.",
          "Never found a building on the Kettle Shale.",
        ],
      },
      { heading: "9 Thanks", level: 2 },
      {
        paragraph:
          "The drilling was done by Osgood Boring under Fiona Maclaren. Tomasz Wieczorek and his people moved their work out of our way more often than we could have asked. The thin sections were made by Yuki Tanabe in the laboratory of Northmoor College. The cost of the survey, 186,000 pounds, was shared equally between the company and the county council.",
      },
    ],
  },
];
