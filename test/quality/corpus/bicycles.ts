import type { Topic } from "./topic.ts";

export const BICYCLES: Topic = {
  name: "bicycles",
  passages: [
    {
      text: "A chain has stretched too far when twelve links measure more than 12 1/16 inches. Ride on with it, and the sprockets wear to match, so that a new chain will skip on them.",
      asks: ["How can I tell that it is time to replace the drive chain?"],
    },
    {
      text: "To mend a puncture, roughen the rubber around the hole, spread the solution thinly and wait until it no longer shines. Most patches fail because they were pressed on while the glue was wet.",
      asks: ["Why does the repair on my inner tube keep coming off?"],
    },
    {
      text: "Spokes loosen in pairs. Pluck them like strings: those on one side should give the same note. A wheel that wobbles sideways is trued by a quarter turn at a time, never more.",
      asks: ["What should I do about a rim that runs from side to side?"],
    },
    {
      text: "Brake pads with a groove are worn out when it can no longer be seen. Bits of aluminium stuck in the rubber scrape the rim; pick them out with a needle.",
    },
    {
      text: "The saddle is at the right height when your heel just reaches the pedal at its lowest point with the leg straight. Pain at the front of the knee means it is too low, pain at the back too high.",
      asks: ["My knees ache in front after cycling. What should I change?"],
    },
    {
      text: "Wide tyres roll no slower than narrow ones at the same comfort, because a soft tyre gives way to each pebble instead of lifting the rider over it. This surprised racers, who had pumped up theirs to nine bars for a century.",
      asks: ["Are fat tyres really less efficient?"],
    },
    {
      text: "The left pedal has a left-hand thread. Whoever forgets this and leans on the spanner tightens it for ever.",
      asks: ["I cannot unscrew one of my pedals. Which way does it turn?"],
    },
    {
      text: "Hub gears are sealed from rain and salt and can be shifted while standing at the lights. They weigh more than a derailleur and lose two to four percent of your effort in their wheels.",
    },
    {
      text: "Disc brakes squeal when oil has got on to them. Clean the rotor with alcohol and burn the pads off in the oven, or better, throw them away.",
      asks: ["How do I get rid of the screeching noise when I slow down?"],
    },
    {
      text: "Karl Drais rode his running machine from Mannheim to Schwetzingen in June 1817. It had no pedals; one pushed oneself off the ground, and yet it was faster than the mail coach.",
    },
  ],
};
