import type { Topic } from "./topic.ts";

export const CHESS: Topic = {
  name: "chess",
  passages: [
    {
      text: "Castling is the only move in which two pieces change places. It is forbidden once the king or that rook has moved, while the king is in check, and if he would have to cross a square that is attacked.",
      asks: ["When may the king not swap with the tower?"],
    },
    {
      text: "A pawn that has just advanced two squares may be captured as though it had gone only one. The right lasts for a single move; whoever hesitates has lost it.",
      asks: ["What is the rule for taking in passing?"],
    },
    {
      text: "With king and rook against a bare king, drive him to the edge of the board with the help of your own king. Keep the rook at a distance and wait with it when it is not your turn to lose time.",
      asks: ["How do you mate when only a rook is left?"],
    },
    {
      text: "The clock was introduced in London in 1883 after games in which a player had thought for hours over one move in the hope that his opponent would fall asleep.",
      asks: ["Why was thinking time limited in tournaments?"],
    },
    {
      text: "In May 1997 Deep Blue beat Garry Kasparov by three and a half points to two and a half. A strange move in the first game, which unsettled the champion, was later said to have been the result of a bug.",
      asks: ["When did a machine first defeat the world champion in a match?"],
    },
    {
      text: "A knight on the rim is dim, says the proverb. In the middle of the board he commands eight squares and in the corner just two.",
      asks: ["Why should the horse not stand at the edge?"],
    },
    {
      text: "Stalemate is a draw: the player to move is not in check but has no legal move. Many a lost game has been saved because the winner, in a hurry, took away the last square from the enemy king.",
      asks: ["How can somebody who is hopelessly behind still get half a point?"],
    },
    {
      text: "The game came from India by way of Persia. Shah mat means that the king is helpless, and the elephant of the Indians became a bishop in England, a fool in France and a runner in Germany.",
    },
    {
      text: "Blindfold players do not see a photograph of the board. Asked what they have in mind, they speak of lines of force and of tensions; the colour and shape of the pieces play no part.",
      asks: ["What do masters picture when they play without looking?"],
    },
    {
      text: "Opening books fill libraries, but for the beginner three rules will do: occupy the centre, bring out a new piece with each move, and get the king to safety before the tenth.",
    },
  ],
};
