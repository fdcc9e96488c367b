/** Requests per second: between two of them lies a time that every store can count. */
export const LEAST_RATE_PER_SECOND = 0.0001
/** Nobody means a longer delay than this when they write a longer number. Units: ms. */
export const MOST_CRAWL_DELAY_MS = 365 * 86_400_000
