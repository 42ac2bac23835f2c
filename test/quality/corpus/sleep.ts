import type { Topic } from "./topic.ts";

export const SLEEP: Topic = {
  name: "sleep",
  passages: [
    {
      text: "A night consists of four to six cycles of about ninety minutes. Deep sleep lies mostly in the first two, dreams in the last ones, so that whoever gets up two hours early loses hardly anything but dreams.",
      asks: ["Which part of the night is cut off when the alarm rings too early?"],
    },
    {
      text: "The body cools by about one degree before it falls asleep. A hot bath an hour or two earlier helps, paradoxically: it brings blood to the skin, where the heat is given off.",
      asks: ["Why does warm water in the evening make one drowsy?"],
    },
    {
      text: "Teenagers are not lazy. During puberty the release of melatonin shifts by two hours, and schools that began at half past eight instead of half past seven had fewer accidents and better marks.",
      asks: ["Should lessons for adolescents start later?"],
    },
    {
      text: "Alcohol makes you fall asleep faster and wake sooner. In the second half of the night, when it has been broken down, the sleep is light and restless.",
      asks: ["Is a glass of wine a good remedy for insomnia?"],
    },
    {
      text: "Sleepwalkers are not acting out their dreams. They rise from deep sleep, when no dreaming takes place, and it is not dangerous to wake them, although they will be confused.",
      asks: ["May one rouse somebody who wanders about at night?"],
    },
    {
      text: "Dolphins sleep with one half of the brain at a time. One eye stays open, and every two hours the halves change over, for an animal that must come up to breathe cannot afford to lose consciousness.",
      asks: ["Which creature keeps half its mind awake?"],
    },
    {
      text: "In sleep apnoea the throat closes for ten seconds or longer, up to a hundred times an hour. Those concerned notice only that they snore and are tired; a mask with slight overpressure keeps the airway open.",
      asks: ["What treatment is there for people who stop breathing at night?"],
    },
    {
      text: "A nap should last twenty minutes or ninety, but nothing in between. Woken from deep sleep after forty, people are dazed for half an hour and work worse than before.",
      asks: ["How long should I lie down after lunch?"],
    },
    {
      text: "Until the eighteenth century many people slept in two parts. Between the first and the second sleep they got up for an hour, prayed, talked with the neighbours or looked after the fire.",
    },
    {
      text: "Jet lag is worse when flying east, since the inner clock runs slightly longer than twenty-four hours and is easier to delay than to advance. Morning light at the destination shortens it.",
      asks: ["Why is it harder to adjust after travelling towards the sunrise?"],
    },
  ],
};
