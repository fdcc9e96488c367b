/**
 * Opens at the first call and gives the same to all later ones. An opening that failed is no answer for ever: whoever asks next opens anew.
 */
export function openedOnce<T>(open: () => Promise<T>): () => Promise<T> {
  let opened: Promise<T> | undefined
  return () => {
    if (opened === undefined) {
      const opening = open()
      opened = opening
      opening.catch(() => {
        if (opened === opening) opened = undefined
      })
    }
    return opened
  }
}
