import { BlockList, isIP } from "node:net";

/** Of IPv6 only what is given out for the internet; within it, and of all IPv4, not what has a special use. */
const GLOBAL_V6 = listOf("2000::/3");
const SPECIAL = listOf(
  // This network, private networks, carriers' shared addresses, this machine, the link.
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.168.0.0/16",
  // Protocols, examples, relays of 6to4, measurements.
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.31.196.0/24",
  "192.52.193.0/24",
  "192.88.99.0/24",
  "192.175.48.0/24",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  // Multicast, reserved, broadcast.
  "224.0.0.0/4",
  "240.0.0.0/4",
  // Azure answers its machines here with their secrets. Other clouds use addresses of the link or private ones.
  "168.63.129.16/32",
  // Protocols (Teredo and others that carry an IPv4 address among them), examples, 6to4.
  "2001::/23",
  "2001:db8::/32",
  "2002::/16",
  "3fff::/20",
);

/** Whether an address belongs to the internet, and to nothing that only we can reach. */
export function isPublicAddress(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !SPECIAL.check(address, "ipv4");
    case 6:
      // A zone names an interface of this machine.
      return !address.includes("%") && GLOBAL_V6.check(address, "ipv6") && !SPECIAL.check(address, "ipv6");
    default:
      return false;
  }
}

function listOf(...ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address, bits] = range.split("/") as [string, string];
    list.addSubnet(address, Number(bits), isIP(address) === 4 ? "ipv4" : "ipv6");
  }
  return list;
}
