import type { DocxBlock } from "../../test/support/make-docx.ts";

export const HANDBOOK_TITLE = "Employee Handbook of the Tarnbrook Stone Company";

export const HANDBOOK: readonly DocxBlock[] = [
  { heading: HANDBOOK_TITLE, level: 1 },
  {
    paragraph:
      "Welcome. This handbook tells you what you can expect from us and what we expect from you. If something in it is unclear or wrong, tell Noor Haddad in the office; she will see that it is put right in the next edition.",
  },
  { heading: "Who we are", level: 2 },
  {
    paragraph:
      "The Tarnbrook Stone Company was founded in 1893 by Josiah and Hester Tarn. Today it belongs to a trust in which every person who has worked here for three years has one vote. We employ 94 people: 71 at Hollin Edge Quarry, 14 at the wharf in Stainmouth and 9 in the office at Tarn House.",
  },
  {
    table: [
      ["Person", "Responsible for", "Extension"],
      ["Ingrid Solberg", "managing director", "200"],
      ["Tomasz Wieczorek", "quarry manager", "210"],
      ["Mireille Fontaine", "safety and environment", "214"],
      ["Declan Pryce", "blasting", "217"],
      ["Priya Raman", "workshop and machines", "221"],
      ["Noor Haddad", "pay, leave and training", "230"],
      ["Leopold Achterberg", "wharf and shipping", "241"],
    ],
  },
  { heading: "Hours and shifts", level: 2 },
  {
    paragraph:
      "The early shift runs from six in the morning until two in the afternoon, the late shift from two until ten. You change over every fortnight. The week has 38 hours; whatever you work beyond that is paid at one and a half times the rate, or taken as time off within three months, as you prefer.",
  },
  {
    paragraph:
      "If you cannot come, ring the control cabin at least one hour before your shift. A message sent to a colleague does not count. From the fourth day of an illness we need a doctor's note.",
  },
  { heading: "Leave", level: 2 },
  {
    paragraph:
      "Everybody has 27 days of paid leave a year and one more for every five years of service, up to 32. At most five days may be carried over, and they lapse at the end of March. During the first two weeks of August the quarry is closed, and ten of your days fall into that time.",
  },
  {
    table: [
      ["Occasion", "Additional paid days"],
      ["Your wedding", "2"],
      ["Birth or adoption of a child", "20"],
      ["Death of a close relative", "5"],
      ["Moving house", "1"],
      ["Duty with the mountain rescue", "as needed, up to 10"],
    ],
  },
  { heading: "Pay", level: 2 },
  {
    paragraph:
      "Wages are paid on the 26th of each month. A bonus is shared out in December: a fifth of the year's profit, divided equally by heads and not by rank, so that the director receives as much as the apprentice. Last year it came to 1,140 pounds each.",
  },
  {
    paragraph:
      "The company pays eight percent of your wage into the pension scheme of the Quarrymen's Provident Society, and you pay four. You may leave the scheme, but please talk to Noor before you do.",
  },
  { heading: "Protective equipment", level: 2 },
  {
    paragraph:
      "Outside the office everybody wears a helmet, boots with steel caps, a bright jacket and glasses. Hearing protection is required inside the crusher house and within twenty metres of a drill. You are given new boots each year and may spend up to 120 pounds on a pair of your own choice.",
  },
  {
    bullets: [
      "Helmets are replaced after five years, or at once after a blow.",
      "Filters of dust masks are thrown away at the end of the shift.",
      "Rings and scarves stay in the locker.",
      "Whoever works above two metres wears a harness.",
    ],
  },
  { heading: "When something happens", level: 2 },
  {
    paragraph:
      "Every accident is reported, and so is every near miss. Reports are never used against the person who makes them. First aid rooms are beside the control cabin and at the wharf; a defibrillator hangs at the door of each. At least two first aiders are on every shift, and you know them by the green stripe on the helmet.",
  },
  {
    paragraph:
      "If you hear the siren rise and fall, leave by the nearest marked way and go to the assembly point at the weighbridge. Do not fetch your bag. The foreman calls the names from the board at the gate, which is why you must turn your tag whenever you come or go.",
  },
  { heading: "Drink, drugs and telephones", level: 2 },
  {
    paragraph:
      "Nobody works under the influence of alcohol or drugs. The limit is zero. Tests are made at random, at most twice a year, and anyone who asks for help before a test keeps the job during treatment. Telephones stay switched off while you drive or operate a machine.",
  },
  { heading: "Learning", level: 2 },
  {
    paragraph:
      "We take four apprentices a year, two for the machines and two for the saw. The training lasts three years, with one day a week at Northmoor College. Whoever passes is offered a permanent post. Courses that you choose yourself are paid for by half if Tomasz or Ingrid agrees that they are of use to your work.",
  },
  { heading: "Complaints", level: 2 },
  {
    paragraph:
      "Speak with your foreman first. If that does not help, or if the foreman is the trouble, go to the ombudswoman, Agnes Thistlewood. She does not belong to the company, and nothing you tell her is passed on without your consent. She is at Tarn House on the first Wednesday of each month.",
  },
];
