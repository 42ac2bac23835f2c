import type { Topic } from "./topic.ts";

export const PRINTING: Topic = {
  name: "printing",
  passages: [
    {
      text: "What Gutenberg invented was not the press but the mould: a hand-held box in which one letter after another could be cast, all of exactly the same height. Four men could make two thousand in a day.",
      asks: ["What was truly new in the workshop at Mainz?"],
    },
    {
      text: "Type metal is an alloy of lead, tin and antimony. It melts at a low temperature and, unlike almost any other metal, does not shrink when it sets, so that the face of the letter stays sharp.",
      asks: ["Which material were letters cast from, and why?"],
    },
    {
      text: "Upper and lower case are so called after the two wooden trays in front of the compositor. Capitals lay in the upper one, and the letters most in use had the largest boxes nearest to the hand.",
      asks: ["Where does the expression for capital letters come from?"],
    },
    {
      text: "Lithography rests on the enmity of grease and water. Alois Senefelder wrote a laundry list on limestone with a waxy pencil in 1796 and found that he could print it.",
      asks: ["Who discovered printing from stone by accident?"],
    },
    {
      text: "A book of the old kind is sewn in sections of sixteen pages. Leaf through it near the spine and you will find the thread in the middle of each; a paperback is merely glued, and in time it sheds its leaves.",
      asks: ["Why do cheap books fall apart?"],
    },
    {
      text: "The Linotype cast a whole line at a stroke of the keyboard. Edison called it the eighth wonder of the world; when it came to New York in 1886, a newspaper could have more than eight pages for the first time.",
      asks: ["Which machine allowed newspapers to grow thicker?"],
    },
    {
      text: "Paper made from ground wood turns brown within decades, because its lignin becomes acid in the light. Rag paper of the fifteenth century is still white, and can be bent without breaking.",
      asks: ["Why have pages from 1900 yellowed more than those from 1500?"],
    },
    {
      text: "Serifs lead the eye along the line, or so it was taught for generations. Tests with readers show hardly any difference; what matters is the length of the line, which should have some sixty-five characters.",
    },
    {
      text: "William Caxton set up the first press in England at Westminster in 1476. He printed Chaucer, romances and a book on chess, and complained that the English of Kent was not that of London.",
    },
    {
      text: "Four inks make all colours: cyan, magenta, yellow and black. The dots of each lie at their own angle, because otherwise they would form a pattern that jumps to the eye.",
    },
  ],
};
