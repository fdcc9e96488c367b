/** The largest body of a page: more is not read back, whoever wrote the page. Units: bytes, decoded. */
export const MOST_BODY_BYTES = 67_108_864
