import type { Topic } from "./topic.ts";

export const BEES: Topic = {
  name: "bees",
  passages: [
    {
      text: "A colony of honey bees holds up to sixty thousand workers in June and barely ten thousand at Christmas. The winter bees live for months instead of weeks, because they rear no brood and carry more fat in their bodies.",
      asks: ["Why do bees that hatch in autumn survive so much longer than those of summer?"],
    },
    {
      text: "When the hive grows too crowded, the old queen leaves with half of her people. They hang in a cluster on a branch for a few hours while scouts search for a hollow tree or an empty chimney.",
      asks: ["What makes a ball of insects suddenly appear in a tree?"],
    },
    {
      text: "The waggle dance tells the other foragers where flowers are. Its angle to the vertical is the angle between the food and the sun, and the longer the bee waggles, the further they must fly.",
      asks: ["How do bees let their sisters know the direction of nectar?"],
    },
    {
      text: "Varroa is a mite the size of a pinhead that sucks on larvae and spreads viruses among them. Beekeepers treat against it after the last harvest with formic acid, and again in midwinter with oxalic acid.",
      asks: ["What can be done against parasites in the hive?"],
    },
    {
      text: "Honey keeps for years because it contains less than twenty percent water. If it is taken from the combs too early, before the cells are capped with wax, it ferments and foams out of the jar.",
      asks: ["What goes wrong if you harvest before the combs are sealed?"],
    },
    {
      text: "A smoker burns jute, dried grass or rotten wood. The bees take the smoke for a forest fire and fill their stomachs with honey for the journey, and a full bee is slow to bend and sting.",
      asks: ["Why does smoke calm bees?"],
    },
    {
      text: "The queen mates only once in her life, on one or two flights in her second week. She stores the sperm of a dozen drones, enough for the million and a half eggs that she will lay.",
    },
    {
      text: "Drones have no sting and gather nothing. In late summer, when no young queens are to be expected, the workers drag them out of the entrance and let them starve.",
      asks: ["What happens to the males when the season ends?"],
    },
    {
      text: "Lime trees flower at the beginning of July and give the last big flow of nectar in many towns. City bees often bring in more than those in the country, where after the rape there is little but wheat.",
    },
    {
      text: "A frame hive with movable combs was described by Lorenzo Langstroth in 1852. He had noticed that bees leave a gap of eight millimetres free, neither building across it nor gluing it up.",
      asks: ["Who discovered the distance that bees keep open between their combs?"],
    },
  ],
};
