import { networkInterfaces } from 'node:os'

/** Addresses at which this machine is seen by itself and by its network; behind a translation of addresses others see another one. */
export function ownAddresses(): ReadonlySet<string> {
  return new Set(Object.values(networkInterfaces()).flatMap((known) => known?.map(({ address }) => address.toLowerCase()) ?? []))
}
