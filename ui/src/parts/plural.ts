/** "1 job", "2 jobs", "1,234 jobs". */
export const plural = (count: number, noun: string): string =>
  `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`;
