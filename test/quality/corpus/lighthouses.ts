import type { Topic } from "./topic.ts";

export const LIGHTHOUSES: Topic = {
  name: "lighthouses",
  passages: [
    {
      text: "Augustin Fresnel broke up the heavy lens into rings, each with only the curve it needed. His apparatus of 1823 threw the light of one oil lamp thirty kilometres out to sea.",
      asks: ["Who invented the lens made of concentric prisms?"],
    },
    {
      text: "No two lights on a coast may look alike. One shows two flashes every ten seconds, the next is dark for a moment and then bright for five; sailors time them with a watch and look them up in the list of lights.",
      asks: ["How does a crew find out which light they are looking at?"],
    },
    {
      text: "The lens turned on a bath of mercury, so smoothly that a finger could move five tonnes. Keepers who had to strain the metal through cloth breathed its vapour for years, and some lost their minds.",
      asks: ["Why did the men who tended the lamps go mad?"],
    },
    {
      text: "The stones of Smeaton's tower on the Eddystone were cut to lock into one another like pieces of a puzzle. When it was taken down in 1882, the tower was sound; it was the rock beneath that had been hollowed out by the sea.",
      asks: ["Why was the third Eddystone tower dismantled although it was in good condition?"],
    },
    {
      text: "Fog makes any lamp useless. Stations therefore had bells, guns and later diaphones, which were driven by compressed air and could be heard, and felt, for seven miles.",
      asks: ["What warned ships when visibility was nil?"],
    },
    {
      text: "Grace Darling was the daughter of the keeper on Longstone. In September 1838 she and her father rowed out in a gale to the wreck of the Forfarshire and brought back nine people.",
      asks: ["Which young woman became famous for saving shipwrecked passengers?"],
    },
    {
      text: "The last lighthouse in Britain with a crew, North Foreland, was automated in 1998. Now a computer in Harwich notices when a lamp fails, and a helicopter brings an engineer twice a year.",
    },
    {
      text: "Keepers wound the clockwork every few hours by hand, raising a weight in a shaft in the middle of the stairs. If they fell asleep, the lens stood still and the flash became a fixed light, which was worse than none.",
    },
    {
      text: "Lightships were anchored where no tower could stand, over sandbanks that moved. Their crews suffered from the rolling more than any other sailors, for an anchored ship cannot ride with the waves.",
      asks: ["What was used to mark shoals on which nothing could be built?"],
    },
    {
      text: "A red sector is made by a pane of coloured glass. Whoever sees red is steering towards the rocks and must alter course until the light turns white.",
      asks: ["What does it mean for a skipper if the beam changes its colour?"],
    },
  ],
};
