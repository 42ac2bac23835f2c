import type { Topic } from "./topic.ts";

export const RAILWAYS: Topic = {
  name: "railways",
  passages: [
    {
      text: "The wheels of a train are cones, not cylinders. In a bend the axle slides outwards, the outer wheel runs on a larger circumference than the inner one, and the pair steers itself without help from the flange.",
      asks: ["How does a carriage follow a curve although both wheels sit rigidly on one axle?"],
    },
    {
      text: "Continuously welded rails cannot expand in the heat. They are laid under tension so that they are free of stress at about 23 degrees; on a hot day the pressure is held by the ballast, and if that is thin the track buckles.",
      asks: ["Why can tracks bend sideways on a very hot day?"],
    },
    {
      text: "In a block system only one train may be in a section at a time. The signal behind it falls to danger by itself when the first axle short-circuits the track current.",
      asks: ["What prevents two trains from entering the same stretch of line?"],
    },
    {
      text: "A steam engine drinks more than it eats: an express of the thirties burned six tonnes of coal on a journey and boiled forty tonnes of water. Some lines laid troughs between the rails from which it was scooped up at speed.",
      asks: ["How did locomotives take on water without stopping?"],
    },
    {
      text: "George Westinghouse patented the air brake in 1869. His great idea was that pressure keeps the brakes off: if the hose tears, the train stops of its own accord.",
      asks: ["What happens to the brakes when a train comes apart?"],
    },
    {
      text: "The gauge of 1,435 millimetres goes back to the colliery tramways of northern England. Brunel's Great Western used seven feet and a quarter inch, ran more smoothly, and lost the battle all the same.",
    },
    {
      text: "Leaves on the line are no joke. Crushed under the wheels they form a film as slippery as Teflon, so that braking distances triple; railways fight it with water jets and sand.",
      asks: ["What makes trains late in autumn?"],
    },
    {
      text: "On a rack railway a cogwheel under the engine grips a toothed bar between the rails. The steepest one climbs Mount Pilatus in Switzerland at a gradient of 48 percent.",
      asks: ["Which mountain line has the greatest slope?"],
    },
    {
      text: "Overhead wires run in a zigzag above the track. If they were straight, they would saw a groove into the carbon strip of the pantograph.",
    },
    {
      text: "Night trains began in America, where distances were long enough for a bed to pay. George Pullman's sleeping cars of 1865 had curtains, carpets and a steward, but no lavatory for ladies.",
    },
  ],
};
