import type { SeededRandom } from './random.ts'

/** Every name that a parser treats in some way of its own, and a few that it does not. */
export const TAG_NAMES: readonly string[] = (
  'a abbr address applet area article aside audio b base basefont bdo bgsound big blockquote body br button canvas caption center cite code col ' +
  'colgroup dd del details dfn dialog dir div dl dt em embed fieldset figcaption figure font footer form frame frameset h1 h2 h6 head header ' +
  'hr html i iframe image img input ins isindex kbd keygen label legend li link listing main map mark marquee menu menuitem meta nav nobr noembed ' +
  'noframes noscript object ol optgroup option output p param picture plaintext pre q rb rp rt rtc ruby s samp script search section select ' +
  'small source span strike strong style sub summary sup svg math table tbody td textarea tfoot th thead time title tr track tt u ul var video ' +
  'wbr xmp foreignObject desc mi annotation-xml circle x-y'
).split(' ')

/** A page with some tags left out, doubled, moved, cut or put in, and perhaps cut off. */
export function damaged(page: string, random: SeededRandom): string {
  let text = page
  const place = (): number => Math.floor(random.next() * text.length)
  for (let left = Math.ceil(random.between(0, 12)); left > 0; left -= 1) {
    const start = text.indexOf('<', place())
    const end = text.indexOf('>', start)
    if (start === -1 || end === -1) continue
    const tag = text.slice(start, end + 1)
    const at = place()
    switch (random.pick({ drop: 7, double: 4, move: 4, put: 3, cut: 2, end: 0.3 })) {
      case 'drop':
        text = text.slice(0, start) + text.slice(end + 1)
        break
      case 'double':
        text = text.slice(0, start) + tag + text.slice(start)
        break
      case 'move':
        text = text.slice(0, at) + tag + text.slice(at)
        break
      case 'put': {
        const name = TAG_NAMES[Math.floor(random.next() * TAG_NAMES.length)] ?? 'p'
        text = `${text.slice(0, start)}<${random.next() < 0.4 ? '/' : ''}${name}>${text.slice(start)}`
        break
      }
      case 'cut':
        text = text.slice(0, start + Math.floor(random.next() * tag.length)) + text.slice(end + 1)
        break
      case 'end':
        text = text.slice(0, Math.max(start, 1_000))
    }
  }
  return text
}
