import type { Topic } from "./topic.ts";

export const GLACIERS: Topic = {
  name: "glaciers",
  passages: [
    {
      text: "A glacier begins where more snow falls in winter than melts in summer. Under its own weight the snow is pressed to firn and, after some thirty years, to ice without any air between the grains.",
      asks: ["How does fallen snow turn into solid ice?"],
    },
    {
      text: "Glacier ice looks blue because water absorbs red light, if only a little. In a snowball the light never travels far enough to be coloured; in a crevasse it does.",
      asks: ["What gives deep crevasses their colour?"],
    },
    {
      text: "Erratic blocks puzzled farmers for centuries: granite from Sweden lay in fields near Berlin. Only in 1875 did Otto Torell find scratches on the rock at Rüdersdorf and prove that ice had carried them.",
      asks: ["How did Scandinavian boulders come to northern Germany?"],
    },
    {
      text: "Meltwater pools may break out all at once. In Iceland such a flood is called a jökulhlaup; that of 1996 carried away two bridges and left icebergs the size of houses on the plain.",
      asks: ["What is it called when a lake under the ice drains suddenly?"],
    },
    {
      text: "Surveyors measure the loss with stakes drilled into the ice. On the Rhône Glacier they stood five metres further out of it at the end of one hot summer than in the spring.",
      asks: ["How is shrinking ice measured in the field?"],
    },
    {
      text: "Bubbles in the Antarctic ice hold air that is eight hundred thousand years old. They show that carbon dioxide never exceeded 300 parts in a million during that time until the twentieth century.",
      asks: ["How do scientists know the composition of the atmosphere in prehistoric times?"],
    },
    {
      text: "Where the bed is steep, the ice breaks into towers called seracs. They fall without warning and at any hour, so that climbers cross below them quickly and do not stop to eat.",
      asks: ["Which danger threatens mountaineers beneath an icefall?"],
    },
    {
      text: "Crossing on snow in the morning is safer than in the afternoon. The bridges over the crevasses are frozen hard before the sun reaches them, and a rope team keeps ten metres between one person and the next.",
    },
    {
      text: "A moraine is the heap of rubble that a glacier leaves at its edge. The ones around Lake Garda are a hundred and fifty metres high and grow excellent wine.",
    },
    {
      text: "Some villages in the Alps wrap their ice in white fleece in May. The blankets save two thirds of the melting beneath them, at a price of several francs a square metre and year.",
      asks: ["Does covering the ice with cloth help?"],
    },
  ],
};
