/** Markup that makes a parser look back: repeated, each costs some parser work that grows with the square, or did. */
export const HOSTILE_UNITS: readonly string[] = [
  ...'div table font p a nobr form select svg math template b button li ul dd h1 option ruby rt td tr caption object frameset body html'
    .split(' ')
    .flatMap((name) => [`<${name}>`, `</${name}>`, `<${name}>x`]),
  ...['<table><td>', '<table><tr><td>x', '<table><a>', '<table>x', '<table><b>', '<table><form>', '<table>x<tr>', '<table><caption>'],
  ...[
    '<svg><foreignObject>',
    '<svg><desc>',
    '<math><mi>',
    '<math><annotation-xml encoding="text/html">',
    '<svg><g>',
    '<svg><p>',
    '<svg></p>',
  ],
  ...[
    '<a><div>',
    '<b><p>',
    '<a><p>',
    '<b><div>',
    '<div><b>',
    '<font><p></font>',
    '<b><p></b>',
    '<a><div></a>',
    '<a><b><p></a>',
    '<b><i><u><p></b>',
  ],
  ...[
    '</br>',
    '</x>',
    '<p><b></p>',
    '<p><b></p>x',
    '<template><table>',
    '<template><tr>',
    '<ul><li>',
    '<button><p>',
    '<form><div>',
    '<ol><li>',
  ],
  ...[
    '&',
    '&amp;',
    '&a',
    '&#',
    '&#x110000;',
    '\u0000',
    '\u0000x',
    '<',
    '</',
    '<!--',
    '<!---->',
    '<?',
    '<!doctype x>',
    '<![CDATA[',
    '\r\n',
    '😀',
  ],
  ...[
    '<script>',
    '<script><!--<script>',
    '<textarea>',
    '<title>',
    '</p><p>',
    '<select><option>',
    '<table><tr><td><select>',
    '<div><hr><b>',
  ],
]

/** The same of what counts up. */
export const HOSTILE_COUNTS: readonly ((index: number) => string)[] = [
  (i) => `<b a=${i}>`,
  (i) => `<p><b a=${i}></p>`,
  (i) => `<p><b a=${i}>x</p>`,
  (i) => `<b a=${i}><div>`,
  (i) => `<table><tr><td><font size=${i}>x</td></tr>`,
  (i) => `<a href=/${i}><div>`,
  (i) => `<nobr a=${i}>`,
  (i) => `<div><b a=${i}></div>`,
  (i) => `<b a=${i % 4}>`,
  (i) => `<html a${i}=b><body a${i}=c>`,
]

/** Pages of each of them, `count` times, alone and behind `<table>`, in text order. */
export function hostilePages(count: number): string[] {
  const units = HOSTILE_UNITS.map((unit) => unit.repeat(count))
  const counted = HOSTILE_COUNTS.map((unit) => Array.from({ length: count }, (_, index) => unit(index)).join(''))
  const alone = [...units, ...counted, tagOf(count), `</div ${attributesOf(count)}>x`, `<svg ${attributesOf(count)}><${'x'.repeat(count)}>`]
  return [...alone, ...alone.map((page) => `<div><p><b>x<table>${page}`), ...alone.map((page) => `<b><i><p>${page}</b>x</i><p>y</table>z`)]
}

/** One tag of many attributes, some of them twice. */
export function tagOf(count: number): string {
  return `<a ${attributesOf(count)} A1=again a0 href=/x>x</a>`
}

function attributesOf(count: number): string {
  return Array.from({ length: count }, (_, index) => `a${index}=${index}`).join(' ')
}
