import type { UrlTask } from './generated/types.ts'

/** A task with the defaults of the schema, as a reader sees one that names only these fields. */
export function newUrlTask(fields: Partial<UrlTask> & { readonly url: string }): UrlTask {
  return { ...DEFAULTS, ...fields }
}

/** Equal to the defaults in schemas/UrlTask.avsc, which a test compares. */
const DEFAULTS: Omit<UrlTask, 'url'> = {
  canonicalUrl: '',
  taskId: '',
  method: 'GET',
  headers: {},
  body: null,
  crawlId: null,
  jobId: null,
  round: 0,
  lane: null,
  depth: 0,
  maxDepth: 0,
  parentUrl: null,
  seedUrl: null,
  redirects: [],
  notBefore: null,
  expiresAt: null,
  attempt: 1,
  priority: 0,
  dedup: 'crawl',
  ifChanged: false,
  extractors: [],
  meta: {},
  traceId: null,
  enqueuedAt: null,
  sitemapLevel: 0,
}
