/** The extractors of the bench: ten fields of any page, once with everything there is and once with the first few of each. */
export interface BenchExtractor {
  readonly name: 'wide' | 'short'
  readonly text: string
}

const definition = (name: string, { all, first }: { readonly all: string; readonly first: string }): string => `name: ${name}
version: 1
fields:
  title: title
  canonical: 'link[rel=canonical]@href'
  description: 'meta[name=description]@content'
  image: 'meta[property="og:image"]@content'
  language: 'html@lang'
  heading: h1
  links: { select: 'a[href]@href', ${all} }
  images: { select: 'img[src]@src', ${all} }
  subheadings: { select: 'h2, h3', ${all} }
  paragraphs: { select: p, ${first} }
`

/** Records of about 17 KB on the corpus. */
export const WIDE: BenchExtractor = { name: 'wide', text: definition('wide', { all: 'type: list', first: 'type: list' }) }

/** Records of about 3 KB: what a page of a shop or an article gives. */
export const SHORT: BenchExtractor = {
  name: 'short',
  text: definition('short', {
    all: 'type: list, transform: [{ items: [0, 12] }]',
    first: 'type: list, transform: [{ items: [0, 5] }]',
  }),
}
