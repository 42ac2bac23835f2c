import compromise from "compromise";

export type Listed = "person" | "place" | "organization";

/** What lists of first and last names, places and firms say of a name, if they know all of it. */
export function listedAs(name: string): Listed | undefined {
  const tagged = compromise(name);
  const isAll = (part: { text(): string }) => part.text().length >= name.length - 1;
  if (isAll(tagged.people())) return "person";
  if (isAll(tagged.places())) return "place";
  return isAll(tagged.organizations()) ? "organization" : undefined;
}

export function isListed(name: string): boolean {
  return listedAs(name) !== undefined;
}
