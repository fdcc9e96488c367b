import { z } from 'zod'
import { MillraceError } from '../kernel/errors.ts'
import type { Page } from './generated/types.ts'

/** Which stored pages a replay reads; what is not given does not narrow. */
export interface ReplayFilter {
  /** Registrable domain, or host. */
  readonly domain?: string | undefined
  readonly crawlId?: string | undefined
  /** Epoch ms, from (included) and until (excluded). */
  readonly fetchedFrom?: number | undefined
  readonly fetchedUntil?: number | undefined
}

/** What `replay:ID` on the control topic holds. */
export interface ReplayRequest {
  readonly replayId: string
  readonly groupId: string
  readonly extractor: string
  readonly extractorVersion: number
  readonly filter: ReplayFilter
}

const schema = z.object({
  replayId: z.string().min(1),
  groupId: z.string().min(1),
  extractor: z.string().min(1),
  extractorVersion: z.number().int().positive(),
  filter: z.object({
    domain: z.string().optional(),
    crawlId: z.string().optional(),
    fetchedFrom: z.number().optional(),
    fetchedUntil: z.number().optional(),
  }),
})

/** Errors: MESSAGE_INVALID naming the field. Fields of later versions are passed over. */
export function parseReplayRequest(payload: unknown): ReplayRequest {
  const parsed = schema.safeParse(payload)
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]
  throw new MillraceError('MESSAGE_INVALID', `the replay request is not valid: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? ''}`)
}

/** True where the page lies within the filter; `domainOf` gives the registrable domain of a URL. */
export function inFilter(
  page: Pick<Page, 'crawlId' | 'fetchedAt' | 'finalUrl'>,
  filter: ReplayFilter,
  domainOf: (url: string) => string,
): boolean {
  if (filter.crawlId !== undefined && page.crawlId !== filter.crawlId) return false
  if (filter.fetchedFrom !== undefined && page.fetchedAt < filter.fetchedFrom) return false
  if (filter.fetchedUntil !== undefined && page.fetchedAt >= filter.fetchedUntil) return false
  if (filter.domain === undefined) return true
  return domainOf(page.finalUrl) === filter.domain || new URL(page.finalUrl).hostname === filter.domain
}
