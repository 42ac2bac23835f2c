import type { Topic } from "./topic.ts";

export const SKY: Topic = {
  name: "sky",
  passages: [
    {
      text: "The eye needs twenty minutes to grow used to the dark, and a single glance at a white lamp undoes it. Observers read their charts by red light, which hardly disturbs the rods of the retina.",
      asks: ["Why do stargazers use red torches?"],
    },
    {
      text: "Stars twinkle because their light passes through restless air; planets do not, since they are small discs rather than points, and the flickering of their parts evens out.",
      asks: ["How can I distinguish Jupiter from a star without a telescope?"],
    },
    {
      text: "The Moon always shows us the same face. The tides that the Earth raised in its rock have slowed its rotation until one turn took exactly as long as one orbit.",
      asks: ["What is the reason we never see the far side of our satellite?"],
    },
    {
      text: "Meteors of the Perseid shower appear around the twelfth of August, when the Earth crosses the trail of the comet Swift-Tuttle. Most are no bigger than a grain of sand.",
      asks: ["Which comet is responsible for the shooting stars of late summer?"],
    },
    {
      text: "The magnification of a telescope is the focal length of the objective divided by that of the eyepiece. More than twice the aperture in millimetres only enlarges the blur.",
      asks: ["How strong an eyepiece is still useful?"],
    },
    {
      text: "Cepheids are stars that swell and shrink in a rhythm. Henrietta Leavitt found in 1912 that the slow ones are the bright ones, and so gave astronomy its first yardstick for distances beyond the Milky Way.",
      asks: ["Who found a way to measure how far away other galaxies are?"],
    },
    {
      text: "A total eclipse of the Sun can be seen from the same place only once in about 375 years. During the few minutes of darkness birds fall silent and the corona becomes visible, a crown of thin hot gas.",
    },
    {
      text: "Noctilucent clouds shine after sunset in June and July, when the Sun is only a little below the horizon. They consist of ice at a height of eighty kilometres, far above any weather.",
      asks: ["What are the bright silvery streaks high up on midsummer nights?"],
    },
    {
      text: "Saturn's rings are nearly two hundred and eighty thousand kilometres across and in most places less than a hundred metres thick. Every fifteen years they turn their edge to us and seem to vanish.",
    },
    {
      text: "A refractor of good quality shows more contrast than a mirror of the same size, as nothing stands in the path of the light. It costs three times as much for each centimetre of aperture.",
    },
  ],
};
