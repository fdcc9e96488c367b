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

/** One tag of many attributes, some of them twice. */
export function tagOf(count: number): string {
  const attributes = Array.from({ length: count }, (_, index) => `a${index}=${index}`).join(' ')
  return `<a ${attributes} A1=again a0 href=/x>x</a>`
}
