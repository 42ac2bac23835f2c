import type { Topic } from "./topic.ts";

export const BREAD: Topic = {
  name: "bread",
  passages: [
    {
      text: "A sourdough starter is flour and water in which wild yeast and lactic bacteria have settled. Feed it once a day at room temperature, or once a week in the refrigerator, and pour off half each time.",
      asks: ["How often does a leaven need fresh flour if it is kept cold?"],
    },
    {
      text: "Salt tightens the dough and slows the yeast. Two grams for every hundred grams of flour is usual; a loaf in which it was forgotten rises quickly, tastes of straw and stays pale.",
      asks: ["My loaf came out blond and bland although it rose fast. What did I leave out?"],
    },
    {
      text: "Steam in the first ten minutes keeps the surface of the loaf soft, so that it can stretch. Without it the crust sets too early and tears at the side instead of opening along the cut.",
      asks: ["Why put a tray of boiling water into the oven?"],
    },
    {
      text: "To see whether dough has been kneaded enough, pull a small piece apart between your fingers. If it can be drawn into a film through which light falls, the gluten is ready.",
      asks: ["How can one test that the dough has been worked long enough?"],
    },
    {
      text: "Rye contains little gluten, and its starch is attacked by its own enzymes. That is why it is leavened with acid: below a pH of about 4.5 the enzymes stop and the crumb does not turn to glue.",
      asks: ["What is the reason for using sour leaven with rye flour?"],
    },
    {
      text: "Bread is done when its core has reached 96 degrees. Those who have no thermometer knock on the bottom of the loaf: it should sound hollow like a drum.",
      asks: ["How do I know that a loaf is baked through?"],
    },
    {
      text: "A cold night in the refrigerator does the flavour good. The yeast almost stops below six degrees while the bacteria go on making acids, and the dough can be shaped straight from the bowl in the morning.",
    },
    {
      text: "Croissant dough is folded around a slab of butter and rolled out three times. Both must be equally firm, or the butter breaks into crumbs or runs out at the edges.",
      asks: ["Why did the fat leak from my pastry layers?"],
    },
    {
      text: "Stale bread has not dried out; its starch has crystallised. Ten minutes in a hot oven reverse this once, which is why yesterday's rolls taste fresh after toasting.",
    },
    {
      text: "The protein content of flour decides how much water it takes up. Strong flour with thirteen percent can be worked at a hydration of seventy-five, whereas cake flour turns to soup.",
    },
  ],
};
