import { Group, NumberInput, SegmentedControl, TextInput } from '@mantine/core';
import type { FieldErrors } from '../../forms/fieldErrors';
import { CONDITIONS } from './conditions';
import type { RuleDraft } from './ruleDraft';

interface RuleFieldsProps {
  draft: RuleDraft;
  onChange: (next: Partial<RuleDraft>) => void;
  errorAt: FieldErrors;
}

/** How long, or how many: what the condition has. */
export function RuleLimits({ draft, onChange, errorAt }: RuleFieldsProps) {
  const { after, afterLabel, count, countLabel, hasRatio, hasWindow } = CONDITIONS[draft.condition];
  const isRatio = hasRatio && draft.measure === 'ratio';
  if (after)
    return (
      <TextInput
        label={afterLabel}
        description={`e.g. 30s, 10m, 2h; empty: ${after}`}
        value={draft.after}
        onChange={(event) => onChange({ after: event.currentTarget.value })}
        error={errorAt('after')}
      />
    );
  return (
    <>
      {hasRatio && (
        <SegmentedControl
          data={[
            { value: 'count', label: 'In a row' },
            { value: 'ratio', label: 'A share of all' },
          ]}
          value={draft.measure}
          onChange={(measure) => onChange({ measure: measure as RuleDraft['measure'] })}
          aria-label="Measure"
          w="fit-content"
        />
      )}
      <Group grow align="flex-start">
        {isRatio ? (
          <NumberInput
            label="Failed jobs"
            description="Of 10 or more jobs"
            suffix=" %"
            value={draft.percent}
            onChange={(percent) => onChange({ percent })}
            error={errorAt('ratio')}
          />
        ) : (
          <NumberInput
            label={countLabel}
            description={`Empty: ${count}`}
            allowDecimal={false}
            value={draft.count}
            onChange={(value) => onChange({ count: value })}
            error={errorAt('count')}
          />
        )}
        {(isRatio || hasWindow) && (
          <TextInput
            label="Within"
            description="e.g. 1h"
            value={draft.window}
            onChange={(event) => onChange({ window: event.currentTarget.value })}
            error={errorAt('window')}
          />
        )}
      </Group>
    </>
  );
}
