import { countText } from '../kernel/count-text.ts'
import { decideCharset, decodeText } from '../message/charset.ts'
import { isHtmlType } from '../message/content-type.ts'
import type { Hop } from '../message/generated/types.ts'
import { challengeOf } from './challenge.ts'
import { type FailureReason, type HttpResponse, type HttpResult, headerValues } from './http-exchange.ts'
import { metaRefresh } from './meta-refresh.ts'
import { contentTypeHeader } from './page-message.ts'
import { type ChainRequest, type HopAnswer, hopOf, MAX_HOPS, redirectOf } from './redirect.ts'
import { retryAfterMs } from './retry-after.ts'
import { failureClass, statusClass } from './retry-class.ts'

/** What an answer means for its task. */
export type Answer =
  | { readonly kind: 'page'; readonly response: HttpResponse }
  | HopAnswer
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'failed'; readonly reason: string; readonly detail: string }
  | {
      readonly kind: 'retry'
      readonly reason: string
      readonly detail: string
      readonly retryAfterMs: number | undefined
      readonly factor?: number
      /** The whole site is to be left alone, not this task alone. */
      readonly backsOff: boolean
      /** Wall against robots that answered in the place of the site. */
      readonly challengedBy?: string
      /** What there is, should this have been the last attempt. */
      readonly keep?: HttpResponse
    }

export interface AnswerContext extends ChainRequest {
  /** Hops that led to this request. */
  readonly chain: readonly Hop[]
  /** Epoch ms. */
  readonly now: number
}

/** Times the usual delay: a wall that is asked again soon stays up. */
const CHALLENGE_FACTOR = 12

/**
 * What the answer of one request means. Pure and total.
 *
 * In this order: a redirect is followed, whatever came with it; a wall against robots is left alone for long; a status that asks for
 * patience is retried, as is a body that ended early; a page that sends its reader on is followed; all else is a page. Which status and
 * which failure is retried: retry-class.ts.
 */
export function readAnswer(result: HttpResult, context: AnswerContext): Answer {
  if (result.kind === 'failure') return failureAnswer(result.reason, result.detail)
  const redirect = redirectOf(result, context)
  if (redirect !== undefined) return redirect
  const { href } = context.target
  const { status } = result
  const challengedBy = challengeOf(result)
  if (challengedBy !== undefined) {
    return {
      kind: 'retry',
      reason: 'challenge',
      detail: `${href} answered with a challenge of ${challengedBy} (status ${status})`,
      retryAfterMs: retryAfterMs(headerValues(result, 'retry-after'), context.now, headerValues(result, 'date').at(-1)),
      factor: CHALLENGE_FACTOR,
      backsOff: true,
      challengedBy,
    }
  }
  const statusIs = statusClass(status)
  if (statusIs.kind === 'retry') {
    return {
      kind: 'retry',
      reason: `http-${status}`,
      detail: `${href} answered with status ${status}`,
      retryAfterMs: retryAfterMs(headerValues(result, 'retry-after'), context.now, headerValues(result, 'date').at(-1)),
      factor: statusIs.factor,
      backsOff: statusIs.backsOff,
    }
  }
  if (result.truncated === 'network') {
    return {
      kind: 'retry',
      reason: 'truncated',
      detail: `the body of ${href} ended after ${countText(result.wireBytes, 'byte')}, before it was whole`,
      retryAfterMs: undefined,
      backsOff: false,
      keep: result,
    }
  }
  return refreshAnswer(result, context) ?? { kind: 'page', response: result }
}

function failureAnswer(reason: FailureReason, detail: string): Answer {
  switch (failureClass(reason)) {
    case 'refused':
      return { kind: 'refused', reason }
    case 'failed':
      return { kind: 'failed', reason, detail }
    case 'retry':
      return { kind: 'retry', reason, detail, retryAfterMs: undefined, backsOff: false }
  }
}

/** A page that sends its reader on within this is a redirect. */
const MAX_REFRESH_MS = 10_000
const SEARCHED_BYTES = 65_536

/**
 * Nearly no page has one, and telling so by its bytes is quicker than to decode them: by the letter of the word that is rarest. Where
 * they may be no ASCII (UTF-16) it is open.
 */
function mayRefresh(head: Buffer): boolean {
  if (head.includes(0)) return true
  for (const letter of 'qQ') {
    for (let at = head.indexOf(letter); at !== -1; at = head.indexOf(letter, at + 1)) {
      if (head[at - 2] === HYPHEN && head.toString('latin1', at - 6, at + 4).toLowerCase() === 'http-equiv') return true
    }
  }
  return false
}
const HYPHEN = 0x2d

/**
 * A refresh is followed only where that leads to another page: there is a page here already, and one that reloads itself, turns in a
 * circle with others (a slide show), or names no URL that can be fetched is better kept than failed.
 */
function refreshAnswer(response: HttpResponse, context: AnswerContext): HopAnswer | undefined {
  const { status, contentType, decoded } = response
  if (status < 200 || status >= 300 || !isHtmlType(contentType) || decoded.length === 0) return undefined
  if (context.chain.length >= MAX_HOPS) return undefined
  const head = decoded.subarray(0, SEARCHED_BYTES)
  if (!mayRefresh(head)) return undefined
  const { charset } = decideCharset(head, contentTypeHeader(response))
  const refresh = metaRefresh(decodeText(head, charset), context.target, charset)
  if (refresh === undefined || refresh.delayMs > MAX_REFRESH_MS) return undefined
  const answer = hopOf(status, refresh.location, context, headerValues(response, 'set-cookie'))
  if (answer.kind !== 'hop') return undefined
  const asked = [context.target.href.replace(/#.*$/, ''), ...context.chain.map(({ url }) => url)]
  return asked.includes(answer.target.href) ? undefined : answer
}
