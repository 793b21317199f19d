import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { call } from '../../api/call';
import type { NewPost } from '../../api/types';
import { sentence } from '../../text/sentence';

export type ErrorOf = (field: string) => string | undefined;

const DEBOUNCE = 350;

/** What the server would refuse, while the person still writes. Nothing is stored. */
export function useCheck(post: NewPost | null) {
  const [debounced] = useDebouncedValue(post && JSON.stringify(post), DEBOUNCE);
  const { data } = useQuery({
    queryKey: ['check', debounced],
    queryFn: ({ signal }) =>
      call('POST /posts/check', { body: JSON.parse(debounced ?? '{}') as NewPost, signal }),
    enabled: debounced !== null,
    placeholderData: (previous) => previous,
    retry: false,
  });
  const current = post !== null && debounced === JSON.stringify(post);
  return { checked: post === null ? undefined : data, current };
}

export interface FieldProblem {
  field: string;
  message: string;
}

/** The message for a field, or for anything below it: `media` also shows `media.0.alt_text`. */
export function errorsOf(problems: readonly FieldProblem[]): ErrorOf {
  return (field) => {
    const found = problems.find(
      (one) =>
        one.field === field || (/^[.[]/.test(one.field.slice(field.length)) && one.field.startsWith(field)),
    );
    return found && sentence(found.message);
  };
}
