import { Button, FileButton } from '@mantine/core';
import { Glyph } from '../../parts/Glyph';
import { MentionButton } from './MentionButton';
import type { CommonRules } from './strictest';

interface ComposerToolsProps {
  rules: CommonRules;
  platform: string;
  hasFiles: boolean;
  hasLink: boolean;
  onFiles: (files: File[]) => void;
  onLink: () => void;
  onInsert: (text: string) => void;
}

export function ComposerTools(props: ComposerToolsProps) {
  const { rules, platform, hasFiles, hasLink, onFiles, onLink, onInsert } = props;
  return (
    <>
      <FileButton multiple accept={rules.fileTypes.join(',')} onChange={onFiles}>
        {(button) => (
          <Button
            {...button}
            variant="subtle"
            color="gray"
            size="compact-sm"
            leftSection={<Glyph name="image" />}
            title="You can also drop or paste files"
          >
            Add files
          </Button>
        )}
      </FileButton>
      <MentionButton platform={platform} onInsert={onInsert} />
      {rules.articles && !hasFiles && !hasLink && (
        <Button
          variant="subtle"
          color="gray"
          size="compact-sm"
          leftSection={<Glyph name="link" />}
          onClick={onLink}
        >
          Link card
        </Button>
      )}
    </>
  );
}
