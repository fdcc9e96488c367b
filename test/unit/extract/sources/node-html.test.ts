import type { Document } from 'domhandler'
import { parse, parseFragment, serialize } from 'parse5'
import { adapter } from 'parse5-htmlparser2-tree-adapter'
import { describe, expect, it } from 'vitest'
import { innerHtml } from '../../../../src/extract/sources/node-html.ts'
import { corpusNote, corpusPages, hasCorpus } from '../../../support/corpus.ts'
import { fieldFrom } from '../../../support/extraction.ts'

const options = { treeAdapter: adapter, scriptingEnabled: true }
const pairOf = (root: Document): { ours: string; theirs: string } => ({ ours: innerHtml(root), theirs: serialize(root, options) })

describe('the HTML inside an element', () => {
  it.each([
    '<!doctype html><title>a &amp; b</title><p title="&quot;&nbsp;<x>">1 &lt; 2&nbsp;&gt;</p>',
    '<script>if (a < b && c) {}</script><style>a > b {}</style><noscript><i>&amp;</i></noscript><textarea>&lt;a></textarea>',
    '<!-- c --><br><img src=a.png alt=""><input disabled><p></p><template><b>t</b></template>',
    '<svg xml:lang=en xlink:href="#a" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 1 1"><title>&amp;</title><style>a &lt; b</style><image/></svg>',
    '<math><mi>x</mi><annotation-xml encoding="text/html"><p>y</annotation-xml></math><plaintext>a < b',
  ])('is what the standard says: %s', (text) => {
    const document = pairOf(parse(text, options))
    expect(document.ours).toBe(document.theirs)
    const fragment = pairOf(parseFragment(text, options) as unknown as Document)
    expect(fragment.ours).toBe(fragment.theirs)
  })

  it('is given of a page that is nested 5,000 deep', () => {
    const deep = `${'<div>'.repeat(5_000)}x${'</div>'.repeat(5_000)}`
    expect(fieldFrom('{ select: main, type: html }', `<main>${deep}</main>`)).toBe(deep)
  })
})

describe.skipIf(!hasCorpus)(`the HTML of real pages${corpusNote}`, () => {
  it('is what the parser itself would write', () => {
    const different = corpusPages({ every: 8 }).filter(({ bytes }) => {
      const { ours, theirs } = pairOf(parse(bytes.toString('utf8'), options))
      return ours !== theirs
    })
    expect(different.map(({ id }) => id)).toEqual([])
  })
})
