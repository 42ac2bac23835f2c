/** Two typewritten pages from the archive; each string is a paragraph. */
export const FLOOD_REPORT: readonly (readonly string[])[] = [
  [
    "INSPECTORATE OF MINES AND QUARRIES",
    "Northmoor Division, 21 November 1952",
    "To the Directors of the Tarnbrook Stone Company",
    "REPORT ON THE FLOODING OF HOLLIN EDGE QUARRY",
    "Gentlemen, I visited your quarry on the 12th and again on the 17th of this month, in order to find the cause of " +
      "the flood in the night of the 9th of November, in which the locomotive shed and the lower benches were lost.",
    "I have spoken with the watchman, Mr. Albert Sugden, with the foreman, Mr. Thomas Eames, and with the engine " +
      "driver, Miss Cora Wilding, who was the last to leave the quarry floor. I wish to say at once that without her " +
      "presence of mind there would have been deaths.",
    "Rain had fallen for sixty hours. The gauge at Marrow Cross showed 147 millimetres. At a quarter past eleven in " +
      "the evening Mr. Sugden heard what he took for a train, although no train was due. It was the water of the old " +
      "lead mine, which had broken through the wall of rock at the southern end.",
    "Miss Wilding was banking the fire of her engine, the Hester. She sounded the whistle without a pause for ten " +
      "minutes, so that the eleven men who slept in the huts below the incline were awake and out of danger when the " +
      "water reached them. The engine was found on its side under four metres of mud.",
  ],
  [
    "The cause of the flood is beyond doubt. A fall of roof had blocked the mouth of the Mossy Level, perhaps weeks " +
      "before, and nobody had looked at it since the spring. The water rose behind the blockage until the rock gave " +
      "way. I must blame the company for having no person whose duty it was to inspect the drain.",
    "The loss is put by your engineer at 23,400 pounds. Work will not be possible on the lower benches before " +
      "Easter. Sixty-two persons are without employment until then.",
    "I REQUIRE that the following be done before work begins again:",
    "1. The mouth of the Mossy Level shall be cleared and lined with brick over a length of thirty metres.",
    "2. A competent person shall inspect it on the first day of every month and sign a book kept for the purpose.",
    "3. No stone shall be taken within forty metres of the southern end of the quarry.",
    "4. The huts shall be moved to the ground above the incline.",
    "I further recommend that the courage of Miss Wilding be brought to the notice of the Lord Lieutenant.",
    "I have the honour to be, Gentlemen, your obedient servant,",
    "H. R. Pemberton, H.M. Inspector of Quarries",
  ],
];
