import { Button, Group, SegmentedControl } from '@mantine/core';
import type { ReactNode } from 'react';
import { showError } from '../../parts/toasts';
import classes from './EditorBar.module.css';
import { bodyOf, formOfJson, type ScheduleDraft } from './scheduleDraft';

interface EditorBarProps {
  draft: ScheduleDraft;
  onChange: (next: Partial<ScheduleDraft>) => void;
  touched: boolean;
  onDiscard: () => void;
  children: ReactNode;
}

/** The buttons of the editor, always in view. */
export function EditorBar({ draft, onChange, touched, onDiscard, children }: EditorBarProps) {
  const toForm = () => {
    const { body, problem } = bodyOf(draft);
    const shown = problem === null ? formOfJson(body, draft.base) : { form: null, problem };
    if (shown.form === null) showError(new Error(shown.problem ?? ''));
    else onChange({ ...shown.form, version: draft.version, base: draft.base });
  };
  return (
    <Group className={classes.root} justify="space-between">
      <SegmentedControl
        size="xs"
        value={draft.json === null ? 'form' : 'json'}
        onChange={(mode) =>
          mode === 'json' ? onChange({ json: JSON.stringify(bodyOf(draft).body, null, 2) }) : toForm()
        }
        data={[
          { value: 'form', label: 'Form' },
          { value: 'json', label: 'JSON' },
        ]}
        aria-label="View"
      />
      <Group gap="xs">
        <Button variant="default" onClick={onDiscard} disabled={!touched}>
          Discard
        </Button>
        {children}
      </Group>
    </Group>
  );
}
