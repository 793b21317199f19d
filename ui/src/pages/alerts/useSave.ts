import { useMutation, useQueryClient } from '@tanstack/react-query';
import { ProblemError } from '../../api/problem';
import { fieldErrors, fieldProblem } from '../../forms/fieldErrors';
import { showSuccess } from '../../parts/toasts';

interface SaveOptions {
  noun: string;
  name: string;
  /** Whether a new one has the name of an existing one: it would replace it. */
  isTaken: boolean;
  send: () => Promise<unknown>;
  onSaved: () => void;
}

/** Saves a rule or channel, and shows what the server says about its fields. */
export function useSave({ noun, name, isTaken, send, onSaved }: SaveOptions) {
  const client = useQueryClient();
  const refresh = () => client.invalidateQueries({ queryKey: ['alerts'] });
  const save = useMutation({
    mutationFn: async () => {
      if (!name) throw fieldProblem('name', `Enter a name for the ${noun}`);
      if (isTaken) throw taken(noun, name);
      return await send();
    },
    onSuccess: () => {
      showSuccess(`${name} saved`);
      onSaved();
      return refresh();
    },
    onError: () => void refresh(),
  });
  return {
    error: save.error,
    errorAt: fieldErrors(save.error),
    isPending: save.isPending,
    submit: () => save.mutate(),
  };
}

function taken(noun: string, name: string): ProblemError {
  const detail = `There is already a ${noun} ${name}: edit it, or choose another name`;
  return new ProblemError({ status: 409, code: 'name_taken', detail, field: 'name' });
}
