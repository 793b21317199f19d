import { useSyncExternalStore } from 'react';
import { asProblem } from '../api/problem';

export interface Toast {
  id: number;
  tone: 'success' | 'error';
  text: string;
  code: string | null;
}

const DURATIONS = { success: 4_000, error: 10_000 };
const listeners = new Set<() => void>();
let toasts: readonly Toast[] = [];
let last = 0;

function change(next: readonly Toast[]): void {
  toasts = next;
  listeners.forEach((notify) => notify());
}

export function dismiss(id: number): void {
  change(toasts.filter((toast) => toast.id !== id));
}

function show(tone: Toast['tone'], text: string, code: string | null): void {
  const id = ++last;
  change([...toasts, { id, tone, text, code }]);
  setTimeout(() => dismiss(id), DURATIONS[tone]);
}

export const showSuccess = (text: string): void => show('success', text, null);

export function showError(error: unknown): void {
  const problem = asProblem(error);
  show('error', problem.message, problem.code);
}

export function useToasts(): readonly Toast[] {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => toasts,
  );
}
