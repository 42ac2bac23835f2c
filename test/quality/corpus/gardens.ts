import type { Topic } from "./topic.ts";

export const GARDENS: Topic = {
  name: "gardens",
  passages: [
    {
      text: "Tomatoes get blight when their leaves stay wet. Plant them under a roof, water only the soil, and take off the lowest leaves so that no rain can splash earth on to the others.",
      asks: ["How do I keep brown rot away from my tomato plants?"],
    },
    {
      text: "A compost heap needs green and brown: kitchen waste and mown grass for the nitrogen, straw, leaves and cardboard for the carbon. If it smells of ammonia, it has too much of the first; if nothing happens, too much of the second.",
      asks: ["My compost stinks. What is missing?"],
    },
    {
      text: "Beans and peas feed themselves. Bacteria in the nodules of their roots bind nitrogen from the air, and cabbages planted in the same bed the following year live on what is left.",
      asks: ["Which vegetables improve the ground for the next crop?"],
    },
    {
      text: "Slugs come out at night and hide by day under boards and stones. Lay out a plank, turn it over in the morning and collect them; two weeks of patience do more than any pellet.",
      asks: ["Is there a way to catch snails without poison?"],
    },
    {
      text: "Roses are pruned when the forsythia flowers. Cut half a centimetre above a bud that points outwards, on a slant, so that rain runs off and the bush stays open in the middle.",
      asks: ["What is the right moment in spring to cut back rose bushes?"],
    },
    {
      text: "Water seldom but deeply. A can each evening only wets the top and teaches the roots to stay there; twenty litres on a square metre once a week make them go down.",
      asks: ["Why is a little water every day bad for plants?"],
    },
    {
      text: "Hydrangeas show the acidity of the soil. With a pH below five and a half, aluminium becomes soluble, and the pink flowers turn blue; gardeners help with alum.",
      asks: ["How can I change the colour of the blossoms from rose to blue?"],
    },
    {
      text: "Apple trees bear in alternate years if they are left to themselves. Thin out the fruit in June to one in each cluster, and the tree has strength enough to form buds for the next season.",
    },
    {
      text: "Lavender hates wet feet. Mix gravel into clay soil before planting, never feed it, and trim it after flowering without cutting into the old wood.",
    },
    {
      text: "Garlic is planted in October, each clove with the tip upwards and three fingers deep. It needs the frost in order to divide; what is set in April forms a single round bulb.",
      asks: ["Why has my garlic not split into cloves?"],
    },
  ],
};
