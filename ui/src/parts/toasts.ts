import { useSyncExternalStore } from 'react';
import { asProblem } from '../api/problem';

export interface Toast {
  id: number;
  tone: 'good' | 'bad';
  text: string;
  code: string | null;
}

const SHOWN_FOR = { good: 4_000, bad: 10_000 };
const listeners = new Set<() => void>();
let toasts: readonly Toast[] = [];
let last = 0;

function change(next: readonly Toast[]): void {
  toasts = next;
  listeners.forEach((tell) => tell());
}

export function dismiss(id: number): void {
  change(toasts.filter((one) => one.id !== id));
}

function show(tone: Toast['tone'], text: string, code: string | null): void {
  const id = ++last;
  change([...toasts, { id, tone, text, code }]);
  setTimeout(() => dismiss(id), SHOWN_FOR[tone]);
}

export const say = (text: string): void => show('good', text, null);

export function complain(error: unknown): void {
  const problem = asProblem(error);
  show('bad', problem.message, problem.code);
}

export function useToasts(): readonly Toast[] {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, () => toasts);
}
