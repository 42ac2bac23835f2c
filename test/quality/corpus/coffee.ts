import type { Topic } from "./topic.ts";

export const COFFEE: Topic = {
  name: "coffee",
  passages: [
    {
      text: "If an espresso runs through in fifteen seconds and tastes sour, grind finer; if it drips for forty and tastes burnt, grind coarser. Twenty-five seconds for thirty millilitres is a good beginning.",
      asks: ["My shot is too acidic and flows too quickly. What should I adjust?"],
    },
    {
      text: "Coffee beans are the seeds of a red cherry. In the washed process the flesh is removed within a day and the seeds ferment in water; in the natural process the whole fruit dries in the sun for three weeks and gives a taste of berries.",
      asks: ["Where does the fruity flavour of some coffees come from?"],
    },
    {
      text: "Freshly roasted beans give off carbon dioxide for days. That is why bags have a valve, and why very fresh coffee foams in the filter and extracts unevenly.",
      asks: ["What is the little hole in the coffee bag good for?"],
    },
    {
      text: "Robusta holds twice as much caffeine as arabica and grows at lower altitudes. It tastes of earth and rubber, but a little of it gives an Italian blend its thick crema.",
      asks: ["Which species contains more of the stimulant?"],
    },
    {
      text: "Water for coffee should be neither soft nor hard. With less than fifty milligrams of lime a litre the cup is thin and sharp; with more than two hundred it is dull, and the machine scales up.",
      asks: ["Does tap water influence the taste in the cup?"],
    },
    {
      text: "Ethiopian families roast the beans in a pan over charcoal in front of their guests. Three rounds are poured, called abol, tona and baraka, and it is rude to leave before the third.",
      asks: ["How many cups must a visitor stay for in Ethiopia?"],
    },
    {
      text: "A paper filter holds back cafestol, an oil that raises cholesterol. Those who drink six cups a day from a metal sieve or a French press take in a noticeable amount of it.",
      asks: ["Is unfiltered coffee unhealthy?"],
    },
    {
      text: "The first crack is heard at about 196 degrees, when steam bursts the beans. Light roasts end soon after it, dark ones at the second crack, when oil appears on the surface.",
    },
    {
      text: "Caffeine blocks the receptors for adenosine, the substance that makes us tired. Half of it is still in the blood after five hours, which is why an afternoon cup may cost you sleep at night.",
    },
    {
      text: "Rust, a fungus with orange spores, destroyed the plantations of Ceylon around 1870. The planters replaced their bushes with tea, and the island has been known for it ever since.",
      asks: ["Why did Sri Lanka turn into a tea country?"],
    },
  ],
};
