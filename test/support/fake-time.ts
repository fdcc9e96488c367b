import { existsSync, writeFileSync } from 'node:fs'

export const HOW_TO_GET_FAKETIME = 'libfaketime: apt-get install libfaketime, or its path as FAKETIME'

/** Where the library is that shifts the wall clock of a program: FAKETIME, else where distributions put it. Shape: undefined: not there. */
export function findFaketime(): string | undefined {
  const places = ['/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu', '/usr/lib64', '/usr/lib', '/usr/local/lib']
  const candidates = [process.env.FAKETIME, ...places.map((place) => `${place}/faketime/libfaketimeMT.so.1`)]
  return candidates.find((path) => path !== undefined && path !== '' && existsSync(path))
}

/** The wall clock of some programs, as a file that they look at about once a second. Their monotonic clock goes on as it is. */
export class FakeTime {
  readonly #file: string
  readonly #library: string

  constructor(library: string, file: string) {
    this.#library = library
    this.#file = file
    this.shift(0)
  }

  get env(): Readonly<Record<string, string>> {
    return {
      LD_PRELOAD: this.#library,
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      FAKETIME_CACHE_DURATION: '1',
    }
  }

  /** Seconds from the real time. */
  shift(seconds: number): void {
    writeFileSync(this.#file, `${seconds < 0 ? '-' : '+'}${Math.abs(seconds)}\n`)
  }
}
