export interface WindowLimits {
  readonly pages: number
  /** Of all that was tried. */
  readonly bytes: number
}

/**
 * Pages that are tried in windows, each as large as may be held in memory: whoever reads the log once for each of them does so seldom.
 * A few pages are worked at the same time, so that no extraction process waits for the next read. Shape: in order; no window is empty.
 */
export async function* triedWindows<Page, Tried extends { readonly bytes: number }>(
  pages: AsyncIterable<Page>,
  run: (page: Page) => Promise<Tried>,
  { atOnce, limits }: { readonly atOnce: number; readonly limits: WindowLimits },
): AsyncGenerator<readonly Tried[]> {
  const working: Promise<Tried>[] = []
  let window: Tried[] = []
  let bytes = 0
  const take = async (next: Promise<Tried> | undefined): Promise<void> => {
    if (next === undefined) return
    const tried = await next
    window.push(tried)
    bytes += tried.bytes
  }
  const isFull = (): boolean => window.length >= limits.pages || bytes >= limits.bytes
  const emptied = (): readonly Tried[] => {
    const full = window
    window = []
    bytes = 0
    return full
  }
  for await (const page of pages) {
    const tried = run(page)
    // Met when its turn comes.
    tried.catch(() => undefined)
    working.push(tried)
    if (working.length <= atOnce) continue
    await take(working.shift())
    if (isFull()) yield emptied()
  }
  while (working.length > 0) {
    await take(working.shift())
    if (isFull()) yield emptied()
  }
  if (window.length > 0) yield window
}
